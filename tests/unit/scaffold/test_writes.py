"""What a script writes beside the folders of its run, as init notes it."""

from __future__ import annotations

import pytest

from trainchart.scaffold.script import read_script

RELATIVE = [
    ('logging.basicConfig(level=1, filename="train.log")', "basicConfig('train.log')"),
    ('logging.FileHandler("x")', "FileHandler('x')"),
    ('RotatingFileHandler("x.log", maxBytes=9)', "RotatingFileHandler('x.log')"),
    ('sqlite3.connect("x.db")', "connect('x.db')"),
    ('np.savez("x.npz", a=a)', "savez('x.npz')"),
    ('np.savez_compressed("x", a=a)', "savez_compressed('x')"),
    ('np.save("x", a)', "save('x')"),
    ('np.savetxt("x.txt", a)', "savetxt('x.txt')"),
    ('json.dump(m, open("m.json", "w"))', "open('m.json')"),
    ('with gzip.open("m.gz", "wt") as f: ...', "open('m.gz')"),
    ('joblib.dump(m, "m.joblib")', "dump('m.joblib')"),
    ('h5py.File("m.h5", "w")', "File('m.h5')"),
    ('zipfile.ZipFile("m.zip", mode="w")', "ZipFile('m.zip')"),
    ('df.to_csv("x.csv")', "to_csv('x.csv')"),
    ('df.to_parquet("x.parquet")', "to_parquet('x.parquet')"),
    ('df.to_json("x.json")', "to_json('x.json')"),
    ('plt.savefig("x.png")', "savefig('x.png')"),
    ('cv2.imwrite("x.png", image)', "imwrite('x.png')"),
    ('keras.utils.plot_model(m, to_file="m.png")', "plot_model('m.png')"),
    ('Path("x").write_text(r)', "write_text('x')"),
    ('Path("x").open("w")', "open('x')"),
    ('Path("x").mkdir(exist_ok=True)', "mkdir('x')"),
    ('Path("x").touch()', "touch('x')"),
    ('OUT = Path("out")\n(OUT / "r").write_text(r)', "write_text('out/r')"),
    ('def main():\n    out = "out"\n    plt.savefig(os.path.join(out, "x.png"))\nmain()', "savefig('out/x.png')"),
    ('OUT = "out"\nplt.savefig(f"{OUT}/x.png")', "savefig('out/x.png')"),
    ('plt.savefig(f"plots/{step:03d}.png")', "savefig('plots/…')"),
    ('plt.savefig("plots/%d.png" % step)', "savefig('plots/…')"),
    ('plt.savefig("plots/{}.png".format(step))', "savefig('plots/…')"),
    ('plt.savefig(os.path.join("plots", name))', "savefig('plots/…')"),
    ('(Path("plots") / name).write_bytes(r)', "write_bytes('plots/…')"),
    ('ModelCheckpoint("ckpt/" + name)', "ModelCheckpoint('ckpt/…')"),
    ('data.cache("./cache")', "cache('./cache')"),
    ('tf.io.TFRecordWriter("x.tfrecord")', "TFRecordWriter('x.tfrecord')"),
    ('tf.io.gfile.GFile("x", "w")', "GFile('x')"),
    ('MonitoredTrainingSession(checkpoint_dir="./train")', "MonitoredTrainingSession('./train')"),
    ('urlretrieve(url, "data.zip")', "urlretrieve('data.zip')"),
    ('archive.extractall("data")', "extractall('data')"),
    ('shutil.copyfile(found, "best.h5")', "copyfile('best.h5')"),
    ('os.rename("x.tmp", "x")', "rename('x')"),
    ('HERE = Path(__file__).resolve().parent\n(HERE / "x").write_text(r)', "write_text('x')"),
    ('open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "x"), "w")', "open('x')"),
    ("keras.callbacks.TensorBoard(histogram_freq=1)", "TensorBoard('logs')"),
    ("keras.utils.plot_model(m)", "plot_model('model.png')"),
]


@pytest.mark.parametrize(("text", "says"), RELATIVE)
def test_a_write_beside_the_volumes_is_noted(text: str, says: str) -> None:
    [note] = read_script(text, "train.py").notes
    assert f": {says} writes where a pod cannot" in note


@pytest.mark.parametrize(
    "text",
    [
        'sqlite3.connect(":memory:")\nsocket.connect("x.db")',
        'logging.basicConfig(level="INFO")\ndf.to_csv()\ndata.cache()\nmodel.to_json()',
        'open(os.path.join(folder, "x"), "w")\nopen(f"{folder}/x", "w")\nopen(f"/{folder}/x", "w")',
        'open("gs://%s/x" % bucket, "w")\nPath("rows.csv").open()\nPath("rows.csv").read_text()',
        'def f(out):\n    open(out + "/x", "w")\ndef g():\n    out = "x"\nf(g())',
        "keras.callbacks.TensorBoard(**settings)\nkeras.callbacks.TensorBoard(folder)",
        'h5py.File("m.h5", "r")\nshutil.copy("rows.csv", folder)\njson.dumps("x.json")',
    ],
)
def test_what_is_no_such_write_is_not_noted(text: str) -> None:
    assert read_script(text, "train.py").notes == ()


def test_all_writes_of_a_module_share_a_note() -> None:
    [note] = read_script("\n".join(f'open("{number}.txt", "w")' for number in range(25)), "train.py").notes
    assert note.startswith("train.py:1: open('0.txt') writes where a pod cannot")
    assert "(also open('1.txt') in line 2, open('2.txt') in line 3" in note
    assert note.endswith("open('19.txt') in line 20, 5 more)")


def test_a_text_that_doubles_in_each_line_is_left() -> None:
    lines = ["a0 = 'aaaaaaaa'", *(f"a{number + 1} = a{number} + a{number}" for number in range(64))]
    assert read_script("\n".join([*lines, "open(a64, 'w')"]), "train.py").notes == ()
