"""Inputs of `trainchart import` with the facts of public manifests and command lines, written again for these tests.

| input | repository | path |
|---|---|---|
| ps-and-workers | kubeflow/tf-operator | examples/v1/dist-mnist/tf_job_mnist.yaml |
| gang-of-workers | kubeflow/tf-operator | examples/v1/distribution_strategy/estimator-API/distributed_tfjob.yaml |
| keras-workers | kubeflow/tf-operator | examples/v1/distribution_strategy/keras-API/multi_worker_tfjob.yaml |
| one-worker | kubeflow/tf-operator | examples/v1/mnist_with_summaries/tf_job_mnist.yaml |
| two-copies | kubeflow/training-operator | examples/tensorflow/simple.yaml |
| chief-and-ps | kubeflow/training-operator | examples/tensorflow/dist-mnist/tf_job_mnist.yaml |
| arena-ps | kubeflow/arena | docs/training/tfjob/distributed.md |
| arena-data | kubeflow/arena | docs/training/tfjob/dataset.md |
| arena-estimator | kubeflow/arena | docs/training/tfjob/estimator.md |
| arena-one | kubeflow/arena | docs/training/tfjob/tensorboard.md |
| arena-selector | kubeflow/arena | docs/training/tfjob/selector.md |
| chart-values | helm/charts | stable/distributed-tensorflow/values.yaml |
| chart-values-gpu | helm/charts | stable/distributed-tensorflow/README.md |
| stateful-sets | helm/charts | stable/distributed-tensorflow/templates/statefulset-{ps,worker}.yaml |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class PublicInput:
    """An input, and what the spec must say of it."""

    text: str
    strategy: str
    replicas: Mapping[str, int]
    says: str
    """Part of a line about what was not carried over, or of a note."""
    name: str = ""
    """Given with --name where the input has none."""


INPUTS = {
    "ps-and-workers": PublicInput(
        """\
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: dist-mnist-for-e2e-test}
spec:
  tfReplicaSpecs:
    PS:
      replicas: 2
      restartPolicy: Never
      template: {spec: {containers: [{name: tensorflow, image: "kubeflow/tf-dist-mnist-test:1.0"}]}}
    Worker:
      replicas: 4
      restartPolicy: Never
      template: {spec: {containers: [{name: tensorflow, image: "kubeflow/tf-dist-mnist-test:1.0"}]}}
""",
        "between-graph-async",
        {"worker": 4, "ps": 2},
        "put the image's entrypoint",
    ),
    "gang-of-workers": PublicInput(
        """\
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: distributed-training, namespace: kf-latest}
spec:
  cleanPodPolicy: None
  tfReplicaSpecs:
    Worker:
      replicas: 3
      restartPolicy: Never
      template:
        metadata: {annotations: {scheduling.k8s.io/group-name: distributed-training}}
        spec:
          containers:
            - {name: tensorflow, image: "gcr.io/kubeflow-examples/distributed_worker:v20181031-513e107c"}
""",
        "multi-worker-mirrored",
        {"worker": 3},
        "a chart can be installed into any namespace",
    ),
    "keras-workers": PublicInput(
        """\
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: multi-worker}
spec:
  cleanPodPolicy: None
  tfReplicaSpecs:
    Worker:
      replicas: 2
      restartPolicy: Never
      template:
        spec:
          containers:
            - name: tensorflow
              image: kubeflowimages/multi_worker_strategy:v20200522-2a5b081c
              volumeMounts: [{name: training, mountPath: /train}]
              resources: {limits: {nvidia.com/gpu: 1}}
          volumes: [{name: training, persistentVolumeClaim: {claimName: strategy-volume}}]
""",
        "multi-worker-mirrored",
        {"worker": 2},
        "MultiWorkerMirroredStrategy, or each trains a copy of its own",
    ),
    "one-worker": PublicInput(
        """\
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: mnist, namespace: kubeflow}
spec:
  cleanPodPolicy: None
  tfReplicaSpecs:
    Worker:
      replicas: 1
      restartPolicy: Never
      template:
        spec:
          containers:
            - name: tensorflow
              image: gcr.io/kubeflow-ci/tf-mnist-with-summaries:1.0
              command: [python, /var/tf_mnist/mnist_with_summaries.py, --log_dir=/train/logs,
                        --learning_rate=0.01, --batch_size=150]
              volumeMounts: [{mountPath: /train, name: training}]
          volumes: [{name: training, persistentVolumeClaim: {claimName: tfevent-volume}}]
""",
        "single",
        {"worker": 1},
        "a finished run frees all pods and their GPUs",
    ),
    "two-copies": PublicInput(
        """\
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: tfjob-simple, namespace: kubeflow}
spec:
  tfReplicaSpecs:
    Worker:
      replicas: 2
      restartPolicy: OnFailure
      template:
        spec:
          containers:
            - name: tensorflow
              image: kubeflow/tf-mnist-with-summaries:latest
              command: [python, /var/tf_mnist/mnist_with_summaries.py]
""",
        "multi-worker-mirrored",
        {"worker": 2},
        "is a moving tag",
    ),
    "chief-and-ps": PublicInput(
        """\
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: dist-mnist}
spec:
  tfReplicaSpecs:
    Chief:
      replicas: 1
      restartPolicy: Never
      template: {spec: {containers: [{name: tensorflow, image: "kubeflow/tf-dist-mnist-test:latest"}]}}
    PS:
      replicas: 1
      restartPolicy: Never
      template: {spec: {containers: [{name: tensorflow, image: "kubeflow/tf-dist-mnist-test:latest"}]}}
    Worker:
      replicas: 2
      restartPolicy: Never
      template: {spec: {containers: [{name: tensorflow, image: "kubeflow/tf-dist-mnist-test:latest"}]}}
""",
        "parameter-server",
        {"chief": 1, "worker": 2, "ps": 1},
        "for that one choose between-graph-async",
    ),
    "arena-ps": PublicInput(
        """\
$ arena submit tf \\
    --name=tf-dist-git --gpus=1 --workers=2 --worker-image=tensorflow/tensorflow:1.5.0-devel-gpu \\
    --sync-mode=git --sync-source=https://code.example.com/tensorflow-sample-code.git \\
    --ps=1 --ps-image=tensorflow/tensorflow:1.5.0-devel --tensorboard \\
    "python code/sample/distributed-mnist/main.py --log_dir=/training_logs --data_dir=code/sample/data"
""",
        "between-graph-async",
        {"worker": 2, "ps": 1},
        "import again with --code FOLDER",
    ),
    "arena-data": PublicInput(
        """\
arena submit tf --name=tf-dist-data --gpus=1 --workers=2 --workerImage=tensorflow/tensorflow:1.5.0-devel-gpu \\
    --syncMode=git --syncSource=https://code.example.com/tensorflow-sample-code.git \\
    --ps=1 --psImage=tensorflow/tensorflow:1.5.0-devel --tensorboard --data=tfdata:/mnist_data \\
    "python code/sample/distributed-mnist/main.py --log_dir /training_logs --data_dir /mnist_data"
""",
        "between-graph-async",
        {"worker": 2, "ps": 1},
        "TensorBoard has no summaries to read",
    ),
    "arena-estimator": PublicInput(
        """\
arena submit tf --name=tf-estimator --gpus=1 --workers=1 --chief --evaluator --data=tfdata:/data/mnist \\
    --logdir=/data/mnist/models --worker-image=tensorflow/tensorflow:1.9.0-devel-gpu \\
    --sync-mode=git --sync-source=https://code.example.com/models.git \\
    --ps=1 --ps-image=tensorflow/tensorflow:1.9.0-devel --tensorboard \\
    "bash code/models/dist_mnist_estimator.sh --data_dir=/data/mnist/MNIST_data --model_dir=/data/mnist/models"
""",
        "between-graph-async",
        {"worker": 2, "ps": 1, "evaluator": 1},
        "all roles share one image",
    ),
    "arena-one": PublicInput(
        """\
arena submit tf --name=tf-tensorboard --gpus=1 --image=tensorflow/tensorflow:1.5.0-devel-gpu \\
    --env=TEST_TMPDIR=code/sample/ --sync-mode=git --sync-source=https://code.example.com/sample.git \\
    --tensorboard --logdir=/training_logs "python code/sample/mnist/main.py --max_steps 5000"
""",
        "single",
        {"worker": 1},
        "TRAINCHART_TENSORBOARD_DIR",
    ),
    "arena-selector": PublicInput(
        """\
$ arena submit tfjob --name=tfjob-with-selector --gpus=1 --workers=1 --selector ssd_node=true \\
    --worker-image=cheyang/tf-mnist-distributed:gpu --ps-image=cheyang/tf-mnist-distributed:cpu \\
    --ps=1 --tensorboard --loglevel debug "python /app/main.py"
""",
        "between-graph-async",
        {"worker": 1, "ps": 1},
        "cheyang/tf-mnist-distributed:gpu is used",
    ),
    "chart-values": PublicInput(
        """\
worker: {number: 2, podManagementPolicy: Parallel, port: 9000,
         image: {repository: dysproz/distributed-tf, tag: 1.7.0, pullPolicy: IfNotPresent}}
ps: {number: 2, podManagementPolicy: Parallel, port: 8000,
     image: {repository: dysproz/distributed-tf, tag: 1.7.0, pullPolicy: IfNotPresent}}
hyperparams: {batchsize: 20, learningrate: 0.001, trainsteps: 0}
""",
        "between-graph-async",
        {"worker": 2, "ps": 2},
        "WORKER_HOSTS, PS_HOSTS, JOB_NAME and POD_NAME",
        "plain-values",
    ),
    "chart-values-gpu": PublicInput(
        """\
worker: {number: 2, podManagementPolicy: Parallel, port: 9090, gpuCount: 1,
         image: {repository: dysproz/distributed-tf, tag: 1.6.0-gpu}}
ps: {number: 2, podManagementPolicy: Parallel, port: 8080, image: {repository: dysproz/distributed-tf, tag: 1.6.0}}
hyperparams: {batchsize: 20, learningrate: 0.001, trainsteps: 10000}
""",
        "between-graph-async",
        {"worker": 2, "ps": 2},
        "dysproz/distributed-tf:1.6.0-gpu is used",
        "gpu-values",
    ),
    "stateful-sets": PublicInput(
        """\
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: digits-worker, labels: {app: distributed-tensorflow, release: digits, role: worker}}
spec:
  replicas: 2
  serviceName: digits-distributed-tensorflow-worker
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: distributed-tensorflow, release: digits, role: worker}}
  template:
    metadata: {labels: {app: distributed-tensorflow, release: digits, role: worker}}
    spec:
      containers:
        - name: worker
          image: dysproz/distributed-tf:1.7.0
          command: [python, train_distributed.py, --learning_rate, "0.001", --batch_size, "20"]
          env:
            - {name: WORKER_HOSTS, valueFrom: {configMapKeyRef: {name: digits, key: worker.hostList}}}
            - {name: PS_HOSTS, valueFrom: {configMapKeyRef: {name: digits, key: ps.hostList}}}
            - {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
            - {name: JOB_NAME, value: worker}
          ports: [{containerPort: 9000}]
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: digits-ps, labels: {app: distributed-tensorflow, release: digits, role: ps}}
spec:
  replicas: 2
  serviceName: digits-distributed-tensorflow-ps
  selector: {matchLabels: {app: distributed-tensorflow, release: digits, role: ps}}
  template:
    metadata: {labels: {app: distributed-tensorflow, release: digits, role: ps}}
    spec:
      containers:
        - name: ps
          image: dysproz/distributed-tf:1.7.0
          command: [python, train_distributed.py, --learning_rate, "0.001", --batch_size, "20"]
          env: [{name: JOB_NAME, value: ps}, {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: digits}
data: {ps.hostList: "digits-ps-0.digits-ps:8000"}
""",
        "between-graph-async",
        {"worker": 2, "ps": 2},
        "the pods of a chart have other host names",
    ),
}
