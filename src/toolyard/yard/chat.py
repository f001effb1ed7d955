"""Assembles the Chat of a Yard: its model providers from the settings, and the ports it uses."""

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from toolyard.config import Config
from toolyard.engine.chats.assistants import Assistants
from toolyard.engine.clock import Clock, SystemClock
from toolyard.engine.registry import Registry
from toolyard.gateway.assistant_models import AssistantModels
from toolyard.gateway.chat_ports import InstalledPrompt, PendingApproval, PromptRequest, PromptSources, ToolPort
from toolyard.gateway.chats import Chat, ChatRules
from toolyard.gateway.media_links import MediaLinks
from toolyard.gateway.media_parts import MediaRefusals
from toolyard.gateway.offer import Search
from toolyard.gateway.offer_policy import OfferPolicy
from toolyard.gateway.providers.answer import Limits
from toolyard.gateway.providers.contact import WatchedUpstream
from toolyard.gateway.providers.upstream import HttpUpstream
from toolyard.gateway.providers.upstreams import Provider, Upstreams
from toolyard.gateway.tour_model import Tour
from toolyard.gateway.turns.context_window import ContextWindows
from toolyard.gateway.turns.display import Show
from toolyard.gateway.turns.turn_memory import TurnMemory
from toolyard.gateway.turns.turn_plan import TurnPorts
from toolyard.protocol.access import ApprovalState
from toolyard.protocol.content import Media
from toolyard.protocol.envelope import Failure
from toolyard.protocol.json import JsonObject, find_main_argument
from toolyard.protocol.mask import Mask
from toolyard.protocol.records.assistant_record import AssistantOptions
from toolyard.protocol.tool import Origin, Risk, ToolCall, ToolSpec
from toolyard.settings import Settings

if TYPE_CHECKING:
    from toolyard.yard.yard import Yard

DEFAULT_URL: Final = "https://api.openai.com/v1"  # where a key without an address belongs
_TOUR_PAUSE_S = 0.012  # between two words of the guide, at reading speed
_MOST_WAITING = 200


def make_chat(
    yard: "Yard",
    *,
    clock: Clock | None = None,
    static: Callable[[], Mapping[str, str]] = dict,
    printed: Callable[[], Mapping[str, str]] | None = None,
    mask: Mask | None = None,
    limits: Limits = Limits(),  # noqa: B008 it is frozen
    tour_pause_s: float = _TOUR_PAUSE_S,
    links: MediaLinks | None = None,
) -> Chat:
    """Return the chat of a Yard. ``static`` has the values of static plugins, ``mask`` the secrets of plugins.

    ``printed``: the same values with their folds, for the prompts of an installation, which choose among these.
    ``links``: where people see the media of tools; without, only small pictures are in answers.
    """
    clock, config = clock or SystemClock(), yard.config
    mask = mask or Mask()
    mask.add(config.secrets)
    texts = PromptSources(
        specs=lambda: (tool.spec for tool in yard.tools.list_built_in_first()),
        version=lambda: (yard.tools.version(), mask.size),
        mask=mask.text,
        static=static,
        task=yard.state.tasks.find_for_caller,
        now=lambda: clock.now().astimezone(yard.state.zone),
        own=lambda: {name: prompt.text for name, prompt in yard.prompts.list_prompts().items()},
        report_unfilled=yard.prompts.report_unfilled,
    )
    if config.vcp is not None:
        texts = replace(texts, installed=_make_installed_prompts(yard, config.vcp, texts, printed or static, clock))
    assistants = Assistants(yard.state.store, clock)

    async def list_assistants(caller: str) -> list[AssistantOptions]:
        return [*(await assistants.list_all(caller) if caller else ()), *yard.prompts.list_assistants()]

    settings = config.settings
    tools = _make_tool_port(yard, mask, links)
    ports = TurnPorts(
        tools=tools,
        refusals=MediaRefusals(clock.monotonic),
        memory=TurnMemory(clock.monotonic, mask.text) if settings.remember_tool_results else None,
        windows=ContextWindows(lambda name: (spec := tools.spec(name)) is not None and spec.risk is Risk.READ),
        now=clock.now,
    )
    rules = ChatRules(
        show=Show(settings.chat_show),
        nonce=settings.request_nonce,
        followed_s=60.0 * settings.chat_unfollowed_minutes,
    )
    offer_policy = OfferPolicy(
        texts, clock.monotonic, settings.offer, lists_aliases=settings.model_aliases, search=read_search(settings)
    )
    upstreams = _make_upstreams(yard, config, clock, limits, tour_pause_s, mask)
    return Chat(upstreams, texts, offer_policy, ports, rules, yard.state.turns, AssistantModels(list_assistants))


def _make_installed_prompts(
    yard: "Yard", root: Path, texts: PromptSources, printed: Callable[[], Mapping[str, str]], clock: Clock
) -> Callable[[PromptRequest], Awaitable[InstalledPrompt]]:
    """Return what fills requests with the prompts of an installation of VCPToolBox."""
    from toolyard.dialects.vcp_nodes import NO_NODES
    from toolyard.vcp.dynamic_tools import ListedTool
    from toolyard.vcp.prompt_files import PromptFiles
    from toolyard.vcp.prompts import InstalledPrompts, PromptPorts
    from toolyard.vcp.similarity import Similarities

    files = PromptFiles(root)
    ports = PromptPorts(
        now=texts.now,
        task=texts.task,
        statics=printed,
        tools=lambda: {f"VCP{spec.name}": spec.prompt_text for spec in texts.specs() if spec.prompt_text},
        listed_tools=lambda: [
            ListedTool(spec.name, spec.display_name, spec.description, spec.prompt_text)
            for spec in texts.specs()
            if spec.prompt_text
        ],
        own=texts.own,
        nodes=lambda: yard.nodes.nodes.write_list() if yard.nodes.nodes is not None else NO_NODES,
        port=lambda: str(yard.plugins.port),
        preprocess=yard.vcp.preprocess,
        similarity=Similarities(files, clock.monotonic, yard.mask.text).compare,
    )
    return InstalledPrompts(files, ports).fill


def read_search(settings: Settings) -> Search:
    """Return what the settings say of tool search."""
    return Search(beyond=settings.tool_search, always=settings.always_offered)


def change_upstreams(chat: Chat, yard: "Yard", config: Config, *, clock: Clock, mask: Mask) -> None:
    """Use the model providers of these settings for turns that begin from now on."""
    mask.add(config.secrets)
    chat.change_upstreams(_make_upstreams(yard, config, clock, Limits(), _TOUR_PAUSE_S, mask))


def _make_upstreams(
    yard: "Yard", config: Config, clock: Clock, limits: Limits, tour_pause_s: float, mask: Mask
) -> Upstreams:
    url, key, options = (
        config.settings.upstream_url,
        config.settings.upstream_key,
        config.settings.default_provider_options,
    )
    if url is None and (key or options.keys):
        url = DEFAULT_URL
    if options.disabled:
        url = None
    default = WatchedUpstream(HttpUpstream("upstream", url, key, limits, options), clock.now) if url else None
    named = {
        name: Provider(
            WatchedUpstream(HttpUpstream(name, one.url, one.key, limits, one.options), clock.now),
            one.models,
            one.former_names,
        )
        for name, one in config.settings.upstreams.items()
        if not one.options.disabled
    }
    tour = Tour(
        lambda: clock.now().astimezone(yard.state.zone), pause_s=tour_pause_s, has_provider=bool(default or named)
    )
    return Upstreams(tour, named, default, config.settings.fallbacks, config.settings.default_model or "", mask.text)


def _make_tool_port(yard: "Yard", mask: Mask, links: MediaLinks | None) -> ToolPort:
    def request(tool: str, arguments: JsonObject, *, caller: str, maid: str | None, metadata: JsonObject) -> ToolCall:
        call = yard.calls.request(tool, arguments, caller=caller, origin=Origin.CHAT)
        return replace(call, maid=maid, metadata=metadata)

    return ToolPort(
        spec=lambda name: _find_spec(yard.tools, name),
        request=request,
        settle=yard.calls.settle,
        find_outcome=yard.calls.find_outcome,
        express=lambda call, outcome, language: yard.results.express(call, outcome, "openai", language=language),
        schedule=lambda call, at: yard.calls.submit(call, at=at),
        list_pending=lambda calls: _list_pending(yard, calls, links.public_url if links else ""),
        mask=mask.text,
        publish=links.publish if links else _publish_nothing,
    )


async def _publish_nothing(_: Media) -> str:
    return ""


async def _list_pending(yard: "Yard", calls: Collection[str], address: str) -> list[PendingApproval]:
    pending = await yard.state.approvals.page((ApprovalState.PENDING,), limit=_MOST_WAITING)
    return [
        PendingApproval(
            approval=one.id,
            call_id=one.call_id,
            tool=one.tool,
            about=find_main_argument(one.arguments),
            command=yard.config.own_command.for_home.format("approval allow", one.id),
            url=f"{address}/approvals/{one.id}" if address else "",
        )
        for one in reversed(pending)
        if one.call_id in calls
    ]


def _find_spec(tools: Registry, name: str) -> ToolSpec | None:
    try:
        return tools.get(name).spec
    except Failure:
        return None
