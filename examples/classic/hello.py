"""Hello, distributed TensorFlow: a cluster of two, in which one task runs an operation that is placed on the other.

Start it twice, anywhere and in any order; the chief waits for the worker to appear:

    python hello.py --job_name=worker --chief_hosts=localhost:2222 --worker_hosts=localhost:2223
    python hello.py --job_name=chief --chief_hosts=localhost:2222 --worker_hosts=localhost:2223
"""

import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
flags = tf.app.flags
flags.DEFINE_enum("job_name", None, ["chief", "worker"], "Which of the two this is.", required=True)
flags.DEFINE_integer("task_index", 0, "Which one of its kind.")
flags.DEFINE_string("chief_hosts", None, "host:port of the one that asks.", required=True)
flags.DEFINE_string("worker_hosts", None, "host:port of the one that answers.", required=True)
FLAGS = flags.FLAGS


def main(_):
    cluster = tf.train.ClusterSpec({"chief": FLAGS.chief_hosts.split(","), "worker": FLAGS.worker_hosts.split(",")})
    server = tf.train.Server(cluster, FLAGS.job_name, FLAGS.task_index)
    if FLAGS.job_name == "worker":
        server.join()  # answers until it is stopped
    with tf.device("/job:worker/task:0"):
        hello = tf.constant("Hello, distributed TensorFlow!")
        total = tf.reduce_sum(tf.range(1, 101))
    with tf.Session(server.target) as session:  # waits until every task of the cluster is there
        said, result = session.run([hello, total])
    print(f"{total.device} says: {said.decode()} 1 + … + 100 = {result}", flush=True)


if __name__ == "__main__":
    tf.app.run()
