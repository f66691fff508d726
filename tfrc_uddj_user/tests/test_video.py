# SPDX-License-Identifier: GPL-2.0-only
"""The video example, as a user runs it: what arrives over loopback is decoded without an error.

Nothing is judged by time: pictures and audio frames are counted, and the rates that the encoder
was given are read from what it says."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from test_tools import BIN, LIMIT_S, Receiver

EXAMPLE = Path(__file__).parents[1] / "examples" / "stream-video"
PIECES, PICTURES, AUDIO_FRAMES = 3, 48, 80  # in a piece of 1.92 s

pytestmark = pytest.mark.skipif(not shutil.which("ffmpeg"), reason="there is no ffmpeg")


def stream(receiver: Receiver, *film: str) -> list[int]:
    """Return the rate in kbit/s that each piece was encoded at."""
    environment = os.environ | {"PATH": f"{BIN}:{os.environ['PATH']}", "PIECES": str(PIECES)}
    done = subprocess.run(
        [EXAMPLE, "127.0.0.1", receiver.port, *film],
        env=environment, capture_output=True, text=True, timeout=LIMIT_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [int(kbps) for kbps in re.findall(r"^second .*: (\d+) kbit/s$", done.stderr, re.M)]


def decoded(path: Path) -> dict[str, int]:
    """Decode all of PATH, which must not complain; return how many frames of each kind it has."""
    subprocess.run(["ffmpeg", "-v", "error", "-xerror", "-i", path, "-f", "null", "-"], check=True)
    said = subprocess.run(
        ["ffprobe", "-v", "error", "-count_frames", "-of", "json",
         "-show_entries", "stream=codec_type,nb_read_frames", path],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert not said.stderr
    streams = json.loads(said.stdout)["streams"]
    return {stream["codec_type"]: int(stream["nb_read_frames"]) for stream in streams}


def test_a_live_stream_is_decoded_whole(tmp_path):
    with Receiver(tmp_path) as receiver:
        rates = stream(receiver)
        got = receiver.end()
    assert got["completed"] and got["lost_congestion"] + got["lost_random"] == 0
    assert decoded(receiver.data) == {"video": PIECES * PICTURES, "audio": PIECES * AUDIO_FRAMES}
    # loopback allows far more than the first piece was given blindly
    assert len(rates) == PIECES and rates[0] < max(rates[1:])


def test_a_film_is_streamed_to_its_end(tmp_path):
    film = tmp_path / "film.mkv"
    subprocess.run(
        ["ffmpeg", "-v", "error", "-f", "lavfi", "-i", "testsrc2=size=320x180:rate=25:duration=3",
         "-f", "lavfi", "-i", "sine=sample_rate=48000:duration=3", film],
        check=True,
    )  # fmt: skip
    with Receiver(tmp_path) as receiver:
        rates = stream(receiver, str(film))
        receiver.end()
    assert len(rates) == 2
    assert decoded(receiver.data)["video"] == 75


def test_what_is_no_film_is_one_line(tmp_path):
    (tmp_path / "film").write_text("not a film")
    done = subprocess.run(
        [EXAMPLE, "127.0.0.1", "1", str(tmp_path / "film")],
        env=os.environ | {"PATH": f"{BIN}:{os.environ['PATH']}"}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == f"stream-video: cannot read {tmp_path / 'film'}\n"
