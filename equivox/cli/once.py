"""Commands that refuse an option given twice, where the last would win and the first be lost without a word."""

from __future__ import annotations

from collections import Counter
from typing import Any

from typer.core import TyperCommand


class Command(TyperCommand):
    """A command whose options are given once each, but for those that are meant to be repeated."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Return what the options leave of the arguments; a usage error for an option given twice."""
        _, _, given = self.make_parser(ctx).parse_args(args=list(args))
        for parameter, times in Counter(given).items():
            if times > 1 and parameter.param_type_name == "option" and not parameter.multiple:
                ctx.fail(f"{parameter.opts[0]} is given twice; give it once")
        return super().parse_args(ctx, args)
