"""The recordings and pictures that runs sent, and the spoken answers that they got, found by their SHA-256."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from equivox.core.errors import EquivoxError, RequestError
from equivox.core.lazy import pa, pc
from equivox.core.media import MediaError, checked_image, compact_audio
from equivox.core.redact import redacted_text
from equivox.core.task import DataSource
from equivox.dataset_builders.corpus import Sample, table_in
from equivox.dataset_builders.opening import open_corpus, open_unread
from equivox.report.view.answers import sent_media
from equivox.run.declarations import read_tasks
from equivox.run.opening import data_of
from equivox.run.plan import read_plan
from equivox.run.store import Store, read_sound, response_schema

PLAYED = {b"RIFF": "audio/wav", b"fLaC": "audio/flac", b"OggS": "audio/ogg", b"ID3": "audio/mpeg"}
"""The first bytes of recordings that browsers play as they are, and their types."""


@dataclass(frozen=True)
class Place:
    """Where a recording or picture is: the sample of a corpus that the run in `folder` asked about.

    `column` is that of a further turn's recording or picture.
    """

    source: DataSource
    folder: Path
    sample: str
    kind: str
    column: str


@dataclass(eq=False)
class Media:
    """All recordings and pictures that some runs sent; corpora are opened when the first one is asked for.

    `sounds` has the run of each spoken answer. `data` is where the corpora are now, if that has changed.
    """

    places: Mapping[str, Place]
    sounds: Mapping[str, Path] = field(default_factory=dict)
    data: str | None = None
    _corpora: dict[tuple[str, str], Mapping[str, Sample] | str] = field(default_factory=dict, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @classmethod
    def of(cls, folders: Sequence[Path], data: str | None = None) -> Media:
        """Return the media of the runs in `folders`; what a run without a plan will send is not known yet."""
        places: dict[str, Place] = {}
        sounds: dict[str, Path] = {}
        for folder in folders:
            spoken = Store(folder / "responses", response_schema()).table(("sound",))["sound"].drop_null().to_pylist()
            sounds |= dict.fromkeys(spoken, folder)
            try:
                plan, tasks = read_plan(folder), read_tasks(folder)
            except RequestError:
                continue
            for task in tasks:
                if task.media:
                    own = plan.filter(pc.equal(plan["task"], task.name))
                    sent = pa.table({"sample": own["sample_id"].cast(pa.string()), "sha256": sent_media(task, own)})
                    first = sent.group_by("sha256", use_threads=False).aggregate([("sample", "first")])
                    for row in first.filter(pc.is_valid(first["sha256"])).to_pylist():
                        for medium, sha256 in zip(task.media, row["sha256"].split(" "), strict=True):
                            place = Place(task.data, folder, row["sample_first"], medium.kind, medium.column)
                            places.setdefault(sha256, place)
        return cls(places, sounds, data)

    def read(self, sha256: str) -> tuple[bytes, str]:
        """Return a recording or picture as browsers show it, and its type; RequestError if it is not there."""
        if sha256 in self.sounds:
            return _playable(read_sound(self.sounds[sha256], sha256), "the spoken answer")
        place = self.places.get(sha256)
        if place is None:
            raise RequestError("no request of these runs sent this recording or picture")
        sample = self._samples(place).get(place.sample)
        if sample is None:
            raise RequestError(f"the corpus has no sample {place.sample} now; name the run's data with `--data`")
        file = sample.sent(place.column)
        try:
            if place.kind == "image":
                return checked_image(file.load(), name=file.file_name)
            return _playable(file.load(), file.file_name)
        except (MediaError, OSError) as error:
            raise RequestError(redacted_text(str(error))) from error

    def _samples(self, place: Place) -> Mapping[str, Sample]:
        key = (place.source.corpus, str(place.source.table))
        with self._lock:  # several players ask at once; one of them opens the corpus
            if key not in self._corpora:
                self._corpora[key] = self._opened(place)
            found = self._corpora[key]
        if isinstance(found, str):
            raise RequestError(found)
        return found

    def _opened(self, place: Place) -> Mapping[str, Sample] | str:
        """Return the samples of a corpus by name, or why it cannot be opened."""
        try:
            where = self.data or data_of(place.folder, place.source)
        except RequestError as error:
            return str(error)
        source = table_in(place.source, self.data)
        try:
            corpus = open_unread(source, where) or open_corpus(source, where)
        except (EquivoxError, OSError) as error:
            return redacted_text(f"{error}; name the data of the run with `--data`")
        return {sample.sample_id: sample for sample in corpus.samples}


def _playable(data: bytes, name: str) -> tuple[bytes, str]:
    """Return a recording as browsers play it, and its type; MediaError for one that cannot be decoded."""
    kind = next((kind for start, kind in PLAYED.items() if data.startswith(start)), None)
    return (data, kind) if kind else (compact_audio(data, name=name), "audio/ogg")
