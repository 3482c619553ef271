"""Handwritten digits in the style of TensorFlow 1: every process is told its place in the cluster by flags.

The weights live on the ps. Every worker builds a graph of its own and runs a loop of its own, asynchronously, or with
--sync_replicas in step with the others.

    python mnist_replica.py --job_name=ps --task_index=0 --ps_hosts=localhost:2222 --worker_hosts=localhost:2223
    python mnist_replica.py --job_name=worker --task_index=0 --ps_hosts=localhost:2222 --worker_hosts=localhost:2223
"""

import tempfile
import time

import numpy as np
import tensorflow.compat.v1 as tf
from digits import build_logits, read_digits

tf.disable_v2_behavior()
flags = tf.app.flags
flags.DEFINE_enum("job_name", None, ["ps", "worker"], "What this process is.", required=True)
flags.DEFINE_integer("task_index", None, "Which one of its kind; worker 0 sets the weights and saves.", required=True)
flags.DEFINE_string("ps_hosts", None, "host:port of every ps, separated by commas.", required=True)
flags.DEFINE_string("worker_hosts", None, "host:port of every worker.", required=True)
flags.DEFINE_string("train_dir", None, "Checkpoints go here, for all workers; a folder for temporary files without it.")
flags.DEFINE_boolean("sync_replicas", False, "A step is the mean of all workers' gradients, instead of one's.")
flags.DEFINE_integer("train_steps", 1000, "Steps of the whole training.", lower_bound=1)
flags.DEFINE_integer("batch_size", 100, "Digits per step of one worker.", lower_bound=1)
flags.DEFINE_integer("hidden_units", 100, "Units of the hidden layer.", lower_bound=1)
flags.DEFINE_float("learning_rate", 0.01, "Step size of Adam.", lower_bound=0.0)
FLAGS = flags.FLAGS


def main(_):
    cluster = tf.train.ClusterSpec({"ps": FLAGS.ps_hosts.split(","), "worker": FLAGS.worker_hosts.split(",")})
    server = tf.train.Server(cluster, FLAGS.job_name, FLAGS.task_index)
    if FLAGS.job_name == "ps":
        server.join()  # holds weights until it is stopped
    is_chief, me = FLAGS.task_index == 0, f"/job:worker/task:{FLAGS.task_index}"
    with tf.device(tf.train.replica_device_setter(cluster=cluster, worker_device=me)):
        global_step = tf.train.get_or_create_global_step()
        images, labels = tf.placeholder(tf.float32, (None, 784)), tf.placeholder(tf.int64, (None,))
        logits = build_logits(images, FLAGS.hidden_units)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), labels), tf.float32))
        optimizer = tf.train.AdamOptimizer(FLAGS.learning_rate)
        if FLAGS.sync_replicas:
            workers = cluster.num_tasks("worker")
            optimizer = tf.train.SyncReplicasOptimizer(optimizer, workers, workers)
        train = optimizer.minimize(loss, global_step)
        with tf.control_dependencies([train]):
            step_after = tf.identity(global_step.read_value())
    local_init, ready_for_local_init = tf.local_variables_initializer(), None
    if FLAGS.sync_replicas:
        local_init = optimizer.chief_init_op if is_chief else optimizer.local_step_init_op
        ready_for_local_init = optimizer.ready_for_local_init_op
        queue_runner, first_tokens = optimizer.get_chief_queue_runner(), optimizer.get_init_tokens_op()
    supervisor = tf.train.Supervisor(
        is_chief=is_chief,
        logdir=FLAGS.train_dir or tempfile.mkdtemp(),
        local_init_op=local_init,
        ready_for_local_init_op=ready_for_local_init,
        recovery_wait_secs=1,
        global_step=global_step,
        summary_op=None,
    )
    # Sees the ps and itself only, so that a worker that is away does not hold up the others.
    config = tf.ConfigProto(device_filters=["/job:ps", me])
    session = supervisor.prepare_or_wait_for_session(server.target, config=config)
    if FLAGS.sync_replicas and is_chief:
        supervisor.start_queue_runners(session, [queue_runner])
        session.run(first_tokens)
    (train_images, train_labels), (test_images, test_labels) = read_digits()
    print(f"worker {FLAGS.task_index} begins at step {session.run(global_step)}", flush=True)
    began, choice, step = time.time(), np.random.default_rng(FLAGS.task_index), 0
    while step < FLAGS.train_steps:
        batch = choice.integers(len(train_labels), size=FLAGS.batch_size)
        feed = {images: train_images[batch], labels: train_labels[batch]}
        _, step, value = session.run([train, step_after, loss], feed)
        if step % 100 == 0:
            print(f"worker {FLAGS.task_index} at step {step}: loss {value:.4f}", flush=True)
    print(f"trained for {time.time() - began:.1f} s", flush=True)
    if is_chief:
        right = session.run(accuracy, {images: test_images, labels: test_labels})
        print(f"accuracy on {len(test_labels)} held-out digits: {right:.4f}", flush=True)
        supervisor.saver.save(session, supervisor.save_path, global_step)


if __name__ == "__main__":
    tf.app.run()
