"""Handwritten digits by in-graph replication: one program builds one graph, with a tower of operations on every worker.

The weights live on the ps. A step is the mean of all towers' gradients. Workers and ps run nothing but what the chief
places on them, so that any number of them is started alike:

    python mnist_towers.py --job_name=chief --chief_hosts=localhost:2222 --ps_hosts=… --worker_hosts=…,…
    python mnist_towers.py --job_name=worker --task_index=1 --chief_hosts=localhost:2222 --ps_hosts=… --worker_hosts=…,…
"""

import time

import numpy as np
import tensorflow.compat.v1 as tf
from digits import build_logits, read_digits

tf.disable_v2_behavior()
flags = tf.app.flags
flags.DEFINE_enum("job_name", None, ["chief", "ps", "worker"], "What this process is.", required=True)
flags.DEFINE_integer("task_index", 0, "Which one of its kind.")
flags.DEFINE_string("chief_hosts", None, "host:port of the one that builds the graph.", required=True)
flags.DEFINE_string("ps_hosts", None, "host:port of every ps, separated by commas.", required=True)
flags.DEFINE_string("worker_hosts", None, "host:port of every worker.", required=True)
flags.DEFINE_string("train_dir", None, "The chief's checkpoints go here; nothing is saved without it.")
flags.DEFINE_integer("train_steps", 1000, "Steps of the training.", lower_bound=1)
flags.DEFINE_integer("batch_size", 100, "Digits per step of one worker.", lower_bound=1)
flags.DEFINE_integer("hidden_units", 100, "Units of the hidden layer.", lower_bound=1)
flags.DEFINE_float("learning_rate", 0.01, "Step size of Adam.", lower_bound=0.0)
FLAGS = flags.FLAGS


def build_tower(cluster, worker, images, labels):
    """Return logits, loss and gradients of one worker's share of a batch; towers have their weights in common."""
    device = tf.train.replica_device_setter(cluster=cluster, worker_device=f"/job:worker/task:{worker}")
    with tf.device(device), tf.variable_scope("model", reuse=tf.AUTO_REUSE):
        logits = build_logits(images, FLAGS.hidden_units)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        return logits, loss, tf.gradients(loss, tf.trainable_variables("model"))


def main(_):
    hosts = {"chief": FLAGS.chief_hosts, "ps": FLAGS.ps_hosts, "worker": FLAGS.worker_hosts}
    cluster = tf.train.ClusterSpec({job: names.split(",") for job, names in hosts.items()})
    server = tf.train.Server(cluster, FLAGS.job_name, FLAGS.task_index)
    if FLAGS.job_name != "chief":
        server.join()  # computes, or holds weights, until it is stopped
    workers = cluster.num_tasks("worker")
    images, labels = tf.placeholder(tf.float32, (None, 784)), tf.placeholder(tf.int64, (None,))
    shares = zip(tf.split(images, workers), tf.split(labels, workers), strict=True)
    towers = [build_tower(cluster, worker, *share) for worker, share in enumerate(shares)]
    logits, losses, gradients = zip(*towers, strict=True)
    with tf.device(tf.train.replica_device_setter(cluster=cluster, worker_device="/job:chief")):
        step = tf.train.get_or_create_global_step()
        means = [tf.add_n(parts) / workers for parts in zip(*gradients, strict=True)]
        optimizer = tf.train.AdamOptimizer(FLAGS.learning_rate)
        train = optimizer.apply_gradients(zip(means, tf.trainable_variables("model"), strict=True), step)
        with tf.control_dependencies([train]):
            step_after = tf.identity(step.read_value())
        loss = tf.add_n(losses) / workers
        accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(tf.concat(logits, 0), 1), labels), tf.float32))
    (train_images, train_labels), (test_images, test_labels) = read_digits()
    test_size = len(test_labels) // workers * workers  # towers share alike
    choice = np.random.default_rng(0)
    with tf.train.MonitoredTrainingSession(server.target, checkpoint_dir=FLAGS.train_dir) as session:
        began, done = time.time(), session.run(step)
        print(f"chief begins at step {done} with towers on {[tower[0].device for tower in towers]}", flush=True)
        while done < FLAGS.train_steps:
            batch = choice.integers(len(train_labels), size=FLAGS.batch_size * workers)
            feed = {images: train_images[batch], labels: train_labels[batch]}
            done = session.run(step_after, feed)
            if done % 100 == 0:
                print(f"step {done}: loss {session.run(loss, feed):.4f}", flush=True)
        print(f"trained for {time.time() - began:.1f} s", flush=True)
        right = session.run(accuracy, {images: test_images[:test_size], labels: test_labels[:test_size]})
        print(f"accuracy on {test_size} held-out digits: {right:.4f}", flush=True)


if __name__ == "__main__":
    tf.app.run()
