"""embedded:english: its word pieces, its network, and how its files are put together from packages."""

import json
import math
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

import numpy
import pytest

from memory.embeddings import client, embedded, english, mpnet
from memory.embeddings.client import EmbeddingFailed, embed
from memory.embeddings.english import Unusable, unpacked
from memory.embeddings.models import BadModel, configured
from memory.embeddings.mpnet import Encoder, bent, distances, tensors
from memory.embeddings.word_pieces import pieces, words

MODEL = "embedded:english"
VOCABULARY = ["<s>", "<pad>", "</s>", "[UNK]", "book", "##ing", "##s", "hotel", "a", "酒", "店", "!", "'"]
NUMBERS = {piece: number for number, piece in enumerate(VOCABULARY)}
SIZE = 24


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Booking a Hôtel!", ["booking", "a", "hotel", "!"]),
        ("酒店ok", ["酒", "店", "ok"]),
        ("don't\tx^2\u00ad\x00", ["don", "'", "t", "x", "^", "2"]),
        (" \n", []),
    ],
)
def test_words_are_small_letters_without_accents(text, expected):
    assert list(words(text)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Bookings a hotel", ["book", "##ing", "##s", "a", "hotel"]),
        ("hotelier a", ["[UNK]", "a"]),
        ("酒店!", ["酒", "店", "!"]),
        ("a" * 101, ["[UNK]"]),
    ],
)
def test_a_word_is_its_longest_known_pieces_or_unknown(text, expected):
    assert [VOCABULARY[number] for number in pieces(text, NUMBERS, NUMBERS["[UNK]"], 50)] == expected


def test_only_the_beginning_of_a_text_is_read():
    assert pieces("bookings " * 10, NUMBERS, 3, 4) == [4, 5, 6, 4]


def test_distances_are_exact_when_small_and_coarse_when_great():
    table = distances(300)
    assert table[5, :10].tolist() == [5, 4, 3, 2, 1, 0, 17, 18, 19, 20]
    assert table[20, 0] == table[21, 0] < table[40, 0] < table[299, 0] == 15
    assert table[0, 299] == 31


def test_gelu_is_exact_enough():
    rows = numpy.linspace(-6, 6, 200, dtype="f4")
    exact = [x * (1 + math.erf(x / math.sqrt(2))) / 2 for x in rows.tolist()]
    assert bent(rows) == pytest.approx(exact, abs=1e-5)


def saved(tables: dict[str, numpy.ndarray]) -> bytes:
    """As safetensors has it."""
    header, body = {"__metadata__": {"format": "pt"}}, b""
    for name, table in tables.items():
        content = table.tobytes()
        kind = {"float32": "F32", "int64": "I64"}[str(table.dtype)]
        header[name] = {
            "dtype": kind,
            "shape": list(table.shape),
            "data_offsets": [len(body), len(body) + len(content)],
        }
        body += content
    said = json.dumps(header).encode()
    said += b" " * (-len(said) % 8)
    return len(said).to_bytes(8, "little") + said + body


def network() -> dict[str, numpy.ndarray]:
    """The names and shapes of the real one, small, with numbers drawn."""
    draw = numpy.random.default_rng(1)
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (len(VOCABULARY), SIZE),
        "embeddings.position_embeddings.weight": (200, SIZE),
        "encoder.relative_attention_bias.weight": (mpnet.BUCKETS, mpnet.HEADS),
    }
    for layer in range(mpnet.LAYERS):
        at = f"encoder.layer.{layer}"
        for name in ("q", "k", "v", "o"):
            shapes[f"{at}.attention.attn.{name}.weight"] = (SIZE, SIZE)
        shapes[f"{at}.intermediate.dense.weight"] = (2 * SIZE, SIZE)
        shapes[f"{at}.output.dense.weight"] = (SIZE, 2 * SIZE)
    made = {name: draw.normal(0, 0.5, shape) for name, shape in shapes.items()}
    made |= {
        name.replace("weight", "bias"): numpy.zeros(shapes[name][0]) for name in shapes if "layer." in name
    }
    normal = ["embeddings.LayerNorm"]
    for layer in range(mpnet.LAYERS):
        normal += [f"encoder.layer.{layer}.{part}.LayerNorm" for part in ("attention", "output")]
    made |= {f"{name}.weight": numpy.ones(SIZE) for name in normal}
    made |= {f"{name}.bias": numpy.zeros(SIZE) for name in normal}
    return {f"mpnet.{name}": table.astype("f4") for name, table in made.items()}


@pytest.fixture
def files(tmp_path) -> tuple[bytes, bytes]:
    odd = {"mpnet.embeddings.position_ids": numpy.arange(3)}
    return saved(odd | network()), "\n".join([*VOCABULARY, ""]).encode()


@pytest.fixture
def encoder(files, tmp_path) -> Encoder:
    for name, content in zip(("weights", "vocabulary"), files, strict=True):
        (tmp_path / name).write_bytes(content)
    return Encoder(tmp_path / "weights", tmp_path / "vocabulary")


def test_weights_are_read_by_name(files, tmp_path):
    (tmp_path / "weights").write_bytes(files[0])
    read = tensors(tmp_path / "weights")
    assert "embeddings.position_ids" not in read
    for name, table in network().items():
        assert (read[name.removeprefix("mpnet.")] == table).all()


def test_a_text_has_one_vector_of_length_1_that_depends_on_every_word_and_their_order(encoder):
    texts = ["book a hotel", "hotel a book", "book a hotel!", "", "booking " * 500]
    made = [encoder.vector(text) for text in texts]
    assert all(len(vector) == SIZE for vector in made)
    assert [sum(x * x for x in vector) for vector in made] == pytest.approx([1] * 5, abs=1e-5)
    assert len({tuple(vector) for vector in made}) == 5
    assert encoder.vector("Book  a hôtel") == made[0]


def test_attention_is_as_the_paper_has_it(encoder):
    """One head at a time, as written down there."""
    draw = numpy.random.default_rng(2)
    rows, near = draw.normal(size=(4, SIZE)).astype("f4"), draw.normal(size=(mpnet.HEADS, 4, 4)).astype("f4")
    at, wide = "encoder.layer.3.attention.attn", SIZE // mpnet.HEADS
    q, k, v, o = (encoder._weights[f"{at}.{each}.weight"] for each in "qkvo")
    heads = []
    for head in range(mpnet.HEADS):
        part = slice(head * wide, (head + 1) * wide)
        like = (rows @ q.T)[:, part] @ (rows @ k.T)[:, part].T / math.sqrt(wide) + near[head]
        share = numpy.exp(like) / numpy.exp(like).sum(axis=1, keepdims=True)
        heads.append(share @ (rows @ v.T)[:, part])
    wanted = numpy.concatenate(heads, axis=1) @ o.T
    assert encoder._attention(rows, at, near) == pytest.approx(wanted, abs=1e-3)


# From packages to files


@pytest.fixture
def parts(files, tmp_path, monkeypatch) -> list[Path]:
    """The archive in three parts, as packages have them."""
    whole = BytesIO()
    with ZipFile(whole, "w") as archive:
        for name, content in zip(english.DIGESTS, files, strict=True):
            archive.writestr(f"{english.NAME}/{name}", content)
    content, third = whole.getvalue(), len(whole.getvalue()) // 3 + 1
    made = []
    for number in range(3):
        made.append(tmp_path / f"part.zip.{number}")
        made[-1].write_bytes(content[number * third : (number + 1) * third])
    monkeypatch.setattr(english, "archive_parts", lambda: made)
    return made


def published(monkeypatch, files) -> None:
    named = zip(list(english.DIGESTS), files, strict=True)
    monkeypatch.setattr(english, "DIGESTS", {name: sha256(each).hexdigest() for name, each in named})


def test_the_parts_are_joined_once(parts, files, tmp_path, monkeypatch):
    published(monkeypatch, files)
    folder = unpacked(tmp_path / "models")
    assert ((folder / english.WEIGHTS).read_bytes(), (folder / english.VOCABULARY).read_bytes()) == files
    assert sorted(each.name for each in folder.iterdir()) == sorted(["lock", *english.DIGESTS])
    monkeypatch.setattr(english, "archive_parts", lambda: pytest.fail("it is there"))
    assert unpacked(folder) == folder


def test_other_weights_than_the_published_are_not_used(parts, tmp_path):
    with pytest.raises(Unusable, match="not the one the model's authors published"):
        unpacked(tmp_path / "models")
    assert not (tmp_path / "models" / english.WEIGHTS).exists()


def test_a_broken_archive_and_a_folder_that_cannot_be_written_are_told_in_words(parts, tmp_path):
    parts[1].write_bytes(b"")
    with pytest.raises(Unusable, match="could not be unpacked"):
        unpacked(tmp_path / "models")
    (tmp_path / "file").write_text("")
    with pytest.raises(Unusable, match="could not be unpacked"):
        unpacked(tmp_path / "file" / "models")


def test_weights_that_cannot_be_had_leave_texts_without_vectors(settings, monkeypatch):
    def broken(_):
        raise Unusable("No space left.")

    model = embedded.MODELS["english"]._replace(installed=lambda: True, encode=broken)
    monkeypatch.setitem(embedded.MODELS, "english", model)
    settings.EMBEDDING_MODEL = MODEL
    with pytest.raises(EmbeddingFailed, match="No space left") as failed:
        embed(configured(), ["a"], 1)
    assert failed.value.retryable


def test_it_says_what_to_install(settings, monkeypatch):
    settings.EMBEDDING_MODEL = MODEL
    monkeypatch.setattr(english, "PARTS", (*english.PARTS[:1], "not-installed-anywhere"))
    with pytest.raises(BadModel, match=r"english is not installed.*requirements-embeddings-english\.txt"):
        configured()


def test_the_requirements_name_just_its_parts():
    lines = Path("requirements-embeddings-english.txt").read_text().splitlines()
    packages = [line.split("==")[0] for line in lines if "==" in line]
    assert packages == list(english.PARTS)


def test_no_numpy_is_loaded_to_know_which_model_it_is():
    assert "numpy" not in vars(english)
    assert "numpy" not in vars(embedded)
    assert "numpy" not in vars(client)


@pytest.mark.skipif(not english.installed(), reason="needs requirements-embeddings-english.txt")
def test_texts_of_one_meaning_are_near_each_other(settings, tmp_path):
    settings.EMBEDDING_MODEL, settings.DEPUTY_HOME = MODEL, tmp_path
    texts = [
        "Book a hotel room",
        "Reserve accommodation for a night, please",
        "The weather is nice",
        "",
        "\ud800",
    ]
    made = numpy.asarray(embed(configured(), texts, 1))
    assert made.shape == (5, 768)
    assert numpy.linalg.norm(made, axis=1) == pytest.approx(numpy.ones(5), abs=1e-5)
    # As when the figures of docs/quality.md were computed.
    assert (made[0] @ made[1], made[0] @ made[2]) == pytest.approx((0.6647297, 0.10654646), abs=1e-4)
