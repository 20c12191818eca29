"""equivox's engines as a custom model of lighteval, for tasks that send audio, images or hidden states.

    lighteval custom NAME …/equivox/integrations/lighteval/model.py TASKS --custom-tasks equivox.tasks

`EQUIVOX_MODEL_CONFIG` names the model as for `equivox run` (a YAML file, a packaged model, `scheme:MODEL_ARGS`);
without it, NAME does. Responses are stored in a run directory as they arrive; repeating the command resumes it.
lighteval takes the first subclass of `LightevalModel` in this file, so there must be only one.
"""

from __future__ import annotations

from typing import Any

from lighteval.models.abstract_model import LightevalModel
from lighteval.models.model_output import ModelResponse
from lighteval.tasks.requests import Doc
from lighteval.utils.cache_management import SampleCache

from equivox.core.errors import UsageError
from equivox.engines import engine_of
from equivox.integrations.lighteval.runs import MODEL, Runs, Settings, one_line
from equivox.integrations.lighteval.table import MediaDoc, lighteval_tasks
from equivox.report.progress_bars import progress_bars


class EquivoxModel(LightevalModel):  # type: ignore[misc]
    """Custom model of lighteval that answers equivox's documents, and no others, with any of equivox's engines."""

    add_special_tokens = False
    max_length = 0

    def __init__(self, config: Any) -> None:
        self.config = config
        self._cache = SampleCache(config)
        with one_line():
            self._runs = Runs(Settings.from_environment())
            self._model = self._runs.settings.model or config.model_name
            try:
                engine_of(self._model)
            except UsageError as error:
                raise UsageError(f"{error}; {MODEL} says which model {config.model_name!r} is") from error

    @property
    def tokenizer(self) -> Any:
        """Raise an error: the engine has the model's tokenizer and may be on another machine."""
        raise AttributeError("equivox's engines apply the model's own tokenizer and chat template")

    def greedy_until(self, docs: list[Doc]) -> list[ModelResponse]:
        """Return one response per document, decoded as its task declares; a failed response is empty (`[""]`)."""
        with one_line():
            known = lighteval_tasks()
            wanted: dict[str, list[int]] = {}
            for doc in docs:
                name = _task_name(doc)
                if name not in known:
                    raise UsageError(f"{name} is not a task of equivox; use another model for it")
                wanted.setdefault(name, []).append(doc.specific["position"])
            tasks = [task for name, task in known.items() if name in wanted]
            with progress_bars(quiet=False) as progress:
                found = self._runs.ask(self._model, tasks, wanted, progress=progress)
        responses = []
        for doc in docs:
            run, response = found[_task_name(doc), doc.specific["position"]]
            if isinstance(doc, MediaDoc):
                doc.arrived = True
            # Where the response is stored and which media it used.
            kept = {name: getattr(response, name) for name in ("key", "media_items", "media_tokens", "error")}
            responses.append(
                ModelResponse(
                    input=[{"prompt": doc.query, "equivox_run": str(run), **kept}],
                    # An empty list would assign every later answer to another document.
                    text=[response.text or ""],
                    reasonings=[response.thinking],
                )
            )
        return responses

    def loglikelihood(self, docs: list[Doc]) -> list[ModelResponse]:
        """Fail: no task of equivox's asks for likelihoods."""
        raise NotImplementedError("equivox's tasks are open-ended: no likelihoods are asked for")

    def loglikelihood_rolling(self, docs: list[Doc]) -> list[ModelResponse]:
        """Fail: no task of equivox's asks for likelihoods."""
        raise NotImplementedError("equivox's tasks are open-ended: no likelihoods are asked for")


def _task_name(doc: Doc) -> str:
    return str(doc.task_name).partition("|")[0]
