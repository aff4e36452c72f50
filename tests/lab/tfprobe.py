"""What a person would run first: python tfprobe.py gpu|matmul|conv. TensorFlow's own log goes to standard error."""

import sys

import tensorflow as tf

try:
    if sys.argv[1] == "gpu":
        print("RESULT", tf.__version__, tf.test.is_gpu_available())
    else:
        if sys.argv[1] == "conv":
            result = tf.nn.conv2d(tf.ones([1, 8, 8, 3]), tf.ones([3, 3, 3, 4]), 1, "SAME")
        else:
            result = tf.matmul(tf.ones([4, 4]), tf.ones([4, 4]))
        print("RESULT", tf.__version__, result.device, float(result.numpy().flat[0]))
except Exception as error:
    print("RESULT", tf.__version__, type(error).__name__, str(error)[:200].replace("\n", " "))
