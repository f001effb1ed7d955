"""``toolyard tools export``: tool definitions for other programs."""

import asyncio

import click

from toolyard.cli.common_options import Command, CommonOptions, common_options
from toolyard.cli.completers import complete_tools
from toolyard.cli.output import print_json
from toolyard.dialects.specs import Format, export
from toolyard.errors import ToolyardError
from toolyard.hosts.open_yard import open_yard
from toolyard.protocol.failure import Failure
from toolyard.protocol.tool import ToolSpec


@click.command("export", cls=Command)
@click.argument("names", metavar="[NAME]...", nargs=-1, shell_complete=complete_tools)
@click.option(
    "--format",
    "format_",
    type=click.Choice([one.value for one in Format]),
    default=Format.OPENAI.value,
    show_default=True,
    help="Format: tools of a request (openai, anthropic), a tools/list result (mcp), or prompt text (vcp).",
)
@common_options
def export_(common: CommonOptions, names: tuple[str, ...], format_: str) -> None:
    """Print the definitions of all or the named tools as JSON; with vcp as prompt text.

    \b
    toolyard tools export --format openai
    toolyard tools export Read Edit --format anthropic
    """
    target = Format(format_)
    definitions = [export(spec, target) for spec in asyncio.run(_list_specs(common, names))]
    if target is Format.VCP and not common.json:
        click.echo("\n\n---\n\n".join(str(one["text"]) for one in definitions))
    else:
        print_json({"tools": definitions} if target is Format.MCP else definitions)


async def _list_specs(common: CommonOptions, names: tuple[str, ...]) -> list[ToolSpec]:
    async with open_yard(common.config(), serves=False) as yard:
        try:
            return [yard.tools.get(name).spec for name in names] or [tool.spec for tool in yard.tools]
        except Failure as failure:
            raise ToolyardError(f"{failure.message} {failure.hint}") from failure
