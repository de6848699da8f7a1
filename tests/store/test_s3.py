"""The same on a server of object storage, which starts on loopback: needs moto and s3fs."""

import hashlib
import logging

import pytest

from jaxgate.ext.store.shelf import Shelf
from jaxgate.keep.programs import ProgramStore
from jaxgate.model.program import UnreachableError

CONTENT = b"a program" * 1000
DIGEST = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def bucket(monkeypatch, tmp_path):
    """A bucket on a server of its own; gives the address within, and what stops the server."""
    server_of = pytest.importorskip("moto.server", reason="needs moto").ThreadedMotoServer
    s3fs = pytest.importorskip("s3fs", reason="needs s3fs")
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = server_of(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    name = tmp_path.name.replace("_", "-")
    s3fs.S3FileSystem(skip_instance_cache=True).mkdir(name)
    yield f"s3://{name}/project", server.stop
    server.stop()


def test_programs_are_written_listed_and_read(bucket, tmp_path):
    programs = ProgramStore(tmp_path, Shelf(bucket[0]))
    assert Shelf(bucket[0]).names() == set()
    assert programs.load("abc", DIGEST) is None
    assert programs.why_missing("abc").startswith("abc is missing or damaged, here and in s3://")
    assert programs.save("abc", CONTENT) == DIGEST
    assert programs.save("abc", CONTENT + b"!", bool) == DIGEST
    assert Shelf(bucket[0]).names() == {("abc", DIGEST)}
    assert ProgramStore(tmp_path, Shelf(bucket[0], tmp_path / "cache")).load("abc", DIGEST) == CONTENT
    assert len(list((tmp_path / "cache").iterdir())) == 1


def test_a_server_that_stops_is_told(bucket, tmp_path):
    url, stop = bucket
    programs = ProgramStore(tmp_path, Shelf(url))
    programs.save("abc", CONTENT)
    stop()
    assert programs.load("abc", DIGEST) is None
    assert f"abc could not be fetched: {url}:" in programs.why_missing("abc")
    with pytest.raises(UnreachableError):
        programs.save("def", CONTENT)


def test_a_bucket_that_is_not_there_is_told(bucket):
    """It is not made: a typing error would fill another one."""
    with pytest.raises(UnreachableError, match="no-such-bucket"):
        Shelf("s3://no-such-bucket/project").put("abc", DIGEST, CONTENT)
