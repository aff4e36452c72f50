"""Run by the target's interpreter, from standard input: compute something of known result on the GPU, and count.

``python -B - workload MARKER SECONDS GIVE-UP-AT``. Four phases: a large matrix product; a small convolution net whose
data lie where it computes; the same net fed from Python at each step; the net again on the CPU. Everything is built as
a graph of ``tf.compat.v1``, which is the same from 1.13 to today. Each step's count goes out while it works; result
lines are as inside.py's: MARKER and JSON on a private standard output. Python 3.5 can read it.
"""

import json
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Optional  # noqa: F401

    Emit = Callable[[Dict[str, Any]], None]

GPU, CPU = "/device:GPU:0", "/device:CPU:0"
SIZES = {GPU: (4096, 2048, 1024), CPU: (1024,)}  # of the matrices; the next one where the memory does not suffice
BATCH, SIDE, CLASSES = 64, 32, 10
SHARES = {"matmul": 0.35, "net": 0.25, "fed": 0.2, "net-cpu": 0.2}  # of the time
TOLD = 0.5  # seconds between two counts
CHECKED = 8  # entries of the product that are compared


class TooLarge(Exception):
    """The memory does not hold it."""


def described(error):
    # type: (BaseException) -> str
    return ("%s: %s" % (type(error).__name__, error))[:2000]


def is_memory(error):
    # type: (BaseException) -> bool
    return "ResourceExhausted" in type(error).__name__ or "out of memory" in str(error).lower()


class Work:
    """TensorFlow in graph mode, the devices it lists, and the phases."""

    def __init__(self, tf, emit, seconds):
        # type: (Any, Emit, float) -> None
        self.v1 = getattr(getattr(tf, "compat", None), "v1", None) or tf  # type: Any
        self.tf, self.emit, self.seconds = tf, emit, seconds
        self.numpy = __import__("numpy")  # TensorFlow has it

    def gpus(self):
        # type: () -> List[str]
        config = getattr(self.tf, "config", None)
        lister = getattr(config, "list_physical_devices", None)
        lister = lister or getattr(getattr(config, "experimental", None), "list_physical_devices", None)
        if lister is not None:
            return [str(device.name) for device in lister("GPU")]
        device_lib = __import__("tensorflow.python.client.device_lib", fromlist=["list_local_devices"])
        return [str(one.name) for one in device_lib.list_local_devices() if one.device_type == "GPU"]

    def session(self, graph):
        # type: (Any) -> Any
        config = self.v1.ConfigProto(allow_soft_placement=False)  # on the named device or not at all
        config.gpu_options.allow_growth = True
        return self.v1.Session(graph=graph, config=config)

    # the phases

    def phase(self, name, device, build):
        # type: (str, str, Callable[[Dict[str, Any]], Callable[[], Any]]) -> Dict[str, Any]
        """One phase: build it, run steps for its share of the time, and emit how it went."""
        value = dict.fromkeys(("first", "correct", "error", "detail"))  # type: Dict[str, Any]
        value.update(name=name, device=device, steps=0, seconds=0.0, began=time.time(), size=None)
        try:
            step = build(value)
            begun = time.time()
            step()  # the first one compiles kernels, chooses algorithms and starts cuBLAS and cuDNN
            value.update(first=round(time.time() - begun, 3), began=time.time())
            self.repeat(value, step, self.seconds * SHARES[name])
            finish = value.pop("finish", None)
            if finish is not None:
                finish(value)
        except BaseException as error:
            value["error"], value["memory"] = described(error), is_memory(error)
        close = value.pop("close", None)
        value.pop("finish", None)
        if close is not None:
            close()
        value["ended"] = time.time()
        self.emit({"phase": value})
        return value

    def repeat(self, value, step, seconds):
        # type: (Dict[str, Any], Callable[[], Any], float) -> None
        began = told = time.time()
        while True:
            step()
            value["steps"] += 1
            now = time.time()
            value["seconds"] = round(now - began, 3)
            if now - told >= TOLD:
                told = now
                self.emit({"progress": {"phase": value["name"], "steps": value["steps"], "at": round(now, 2)}})
            if now - began >= seconds:
                return

    def matmul(self, device, size, value):
        # type: (str, int, Dict[str, Any]) -> Callable[[], Any]
        """``a[i][j] = (i + j) % 5`` times ``b[i][j] = (3 i + j) % 7``: below 2**24 the sums are exact, also in TF32."""
        v1, tf = self.v1, self.tf
        value["size"] = size
        with tf.Graph().as_default() as graph:
            with tf.device(CPU):
                i, j = v1.reshape(v1.range(size), [size, 1]), v1.reshape(v1.range(size), [1, size])
                left, right = v1.cast(v1.mod(i + j, 5), tf.float32), v1.cast(v1.mod(3 * i + j, 7), tf.float32)
            with tf.device(device):
                a, b = v1.Variable(left, name="a"), v1.Variable(right, name="b")
                product = v1.matmul(a, b)
                some, total = product[size // 3, :CHECKED], v1.reduce_sum(product)
            session = self.session(graph)
            value["close"] = session.close
            session.run(v1.global_variables_initializer())
        row = size // 3
        wanted = [float(sum((row + k) % 5 * ((3 * k + j) % 7) for k in range(size))) for j in range(CHECKED)]

        def finish(value):
            # type: (Dict[str, Any]) -> None
            got = [float(one) for one in session.run(some)]
            value["correct"] = got == wanted
            value["detail"] = None if got == wanted else "%s instead of %s" % (got[:3], wanted[:3])

        value["finish"] = finish
        return lambda: session.run(total)

    def net(self, device, fed, value, reference=None):
        # type: (str, bool, Dict[str, Any], Optional[float]) -> Callable[[], Any]
        """Two convolutions and a dense layer, trained by gradient descent. The first loss is the same everywhere."""
        v1, tf, numpy = self.v1, self.tf, self.numpy
        value["size"] = BATCH
        draw = numpy.random.RandomState(0)
        pool = draw.randint(0, 256, size=(16 * BATCH, SIDE, SIDE, 3)).astype("uint8")
        shape = [BATCH, SIDE, SIDE, 3]

        def weights(*sizes):
            # type: (int) -> Any
            spread = (2.0 / numpy.prod(sizes[:-1])) ** 0.5
            return v1.Variable(draw.normal(0.0, spread, size=sizes).astype("float32"))

        with tf.Graph().as_default() as graph:
            with tf.device(device):
                first = pool[:BATCH].astype("float32") / 255.0
                image = v1.placeholder(tf.float32, shape) if fed else v1.Variable(first, trainable=False)
                labels = v1.constant(numpy.eye(CLASSES, dtype="float32")[numpy.arange(BATCH) % CLASSES])
                layer = image
                for inner, outer in ((3, 32), (32, 64)):
                    layer = v1.nn.conv2d(layer, weights(3, 3, inner, outer), [1, 1, 1, 1], "SAME")
                    layer = v1.nn.max_pool(v1.nn.relu(layer), [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
                flat = v1.reshape(layer, [BATCH, SIDE * SIDE * 4])
                logits = v1.matmul(flat, weights(SIDE * SIDE * 4, CLASSES))
                loss = v1.reduce_mean(v1.nn.softmax_cross_entropy_with_logits_v2(labels=labels, logits=logits))
                train = v1.train.GradientDescentOptimizer(0.002).minimize(loss)
            session = self.session(graph)
            value["close"] = session.close
            session.run(v1.global_variables_initializer())
        seen = []  # type: List[float]
        count = [0]

        def feed():
            # type: () -> Dict[Any, Any]
            at = count[0] % 16 * BATCH
            count[0] += 1
            return {image: pool[at : at + BATCH].astype("float32") / 255.0} if fed else {}

        def step():
            # type: () -> None
            now = session.run([loss, train], feed())[0]
            seen.append(float(now))

        def finish(value):
            # type: (Dict[str, Any]) -> None
            value["loss"] = [round(seen[0], 4), round(seen[-1], 4)]
            finite = all(abs(one) < 1e6 for one in seen)  # false for NaN, too
            same = reference is None or abs(seen[0] - reference) <= 0.02 * abs(reference)
            # One batch again and again is learned by heart; new ones without any pattern are not.
            value["correct"] = finite and same and (fed or min(seen[1:]) < seen[0])
            value["detail"] = None if value["correct"] else "loss %s to %s" % tuple(value["loss"])

        value["finish"] = finish
        return step


def run(tf, emit, seconds):
    # type: (Any, Emit, float) -> Dict[str, Any]
    work = Work(tf, emit, seconds)
    gpus = work.gpus()
    device = GPU if gpus else CPU
    emit({"begun": {"gpus": gpus, "version": str(getattr(tf, "__version__", ""))}})
    phases = []

    def product(size):
        # type: (int) -> Dict[str, Any]
        return work.phase("matmul", device, lambda value: work.matmul(device, size, value))

    for size in SIZES[device]:
        phases = [product(size)]
        if not phases[0].get("memory"):
            break
    on_cpu = work.phase("net-cpu", CPU, lambda value: work.net(CPU, False, value))
    reference = (on_cpu.get("loss") or [None])[0]
    if gpus:
        phases.append(work.phase("net", device, lambda value: work.net(device, False, value, reference)))
    phases.append(work.phase("fed", device, lambda value: work.net(device, True, value, reference)))
    return {"gpus": gpus, "phases": phases + [on_cpu]}


def main():
    # type: () -> None
    marker, seconds, until = sys.argv[2], float(sys.argv[3]), float(sys.argv[4])
    private = os.dup(1)
    os.dup2(2, 1)

    def emit(line):
        # type: (Dict[str, Any]) -> None
        data = ("\n" + marker + json.dumps(line) + "\n").encode("ascii")
        while data:
            data = data[os.write(private, data) :]

    emit({"begin": list(sys.version_info[:3])})
    if os.name == "nt":
        import ctypes

        windows = ctypes  # type: Any
        windows.windll.kernel32.SetErrorMode(0x8003)
    import faulthandler

    faulthandler.dump_traceback_later(max(0.2, until - time.time()), exit=True, file=2)
    try:
        tf = __import__("tensorflow")
    except BaseException as error:
        emit({"value": {"not_imported": described(error)}})
    else:
        try:
            emit({"value": run(tf, emit, seconds)})
        except BaseException as error:
            emit({"value": {"gpus": [], "phases": [], "error": described(error)}})
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
