"""One call for each stdio plugin of VCPToolBox, which needs no network or fails without it in the same words; and which
plugins are not compared, as docs/vcp.md lists them."""

from typing import Any, Final

CALLS: Final[dict[str, dict[str, Any]]] = {
    "AICodeWorker": {"command": "list_presets"},
    "AgentMessage": {"Maid": "Nova", "message": "hello"},
    "AgnesGen": {"command": "generate", "prompt": "a cat", "size": "1024x768"},
    "AgnesVideoGen": {"command": "query", "video_id": "none"},
    "AnimeFinder": {"imageUrl": "http://127.0.0.1:9/none.jpg"},
    "AnySearch": {},
    "ArtistMatcher": {"command": "FindArtist", "artist_name": "Krenz Cushart"},
    "BilibiliFetch": {"url": "not-a-video"},
    "ServerCodeSearcher": {"query": "function\\s+processToolCall\\(", "search_path": "modules", "context_lines": "1"},
    "ComfyUIGen": {"prompt": "a dragon"},
    "DMXDoubaoGen": {"command": "DoubaoGenerateImage", "prompt": "a shop", "resolution": "1024x1024"},
    "DeepWikiVCP": {"command": "wiki_structure", "url": "not a repository"},
    "DigitalOracle": {"command": "ListProviders"},
    "DoubaoGen": {"command": "generate", "prompt": "a cat", "resolution": "1024x1024"},
    "DynamicToolBridge": {},
    "ServerFileOperator": {"command": "ReadFile", "filePath": "TVStxt/filetool.txt.example"},
    "FlashDeepSearch": {"SearchContent": "climate", "SearchBroadness": "99"},
    "FluxGen": {"prompt": "a cat", "resolution": "1024x1024"},
    "GPTImageGen": {"command": "GPTGenerateImage", "prompt": "a cat", "size": "1024x1024"},
    "GeminiImageGen": {"command": "generate", "prompt": "a pig"},
    "NCBIDatasets": {"command": "no_such_command"},
    "NanoBananaGen2": {"command": "generate", "prompt": "a sunset"},
    "PaperReader": {"command": "describe_runtime"},
    "PlaceholderExplorerCommand": {"command": "Scan"},
    "ServerPluginSourceViewer": {"targettool": "AgentMessage"},
    "ServerPowerShellExecutor": {"command": "Get-ChildItem", "executionType": "blocking"},
    "QwenImageGen": {"command": "GenerateImage", "prompt": "a cat", "image_size": "1328x1328"},
    "RiverTestPlugin": {"command": "ExecuteTest", "river_context": [{"role": "user", "content": "hello"}]},
    "ScheduleManager": {"command": "AddSchedule", "time": "2099-12-31 10:00", "content": "party"},
    "SciCalculator": {"expression": "sqrt(16) + 2**10"},
    "SemanticGroupEditor": {"command": "QueryGroups"},
    "TarotDivination": {"command": "draw_single_card", "fate_check_number": "123", "origin": "月"},
    "TavilySearch": {"query": "news"},
    "ThoughtClusterManager": {"command": "CreateClusterFile", "clusterName": "测试簇", "content": "【思考模块：一】"},
    "TimedTaskQuery": {"maid": "Nova", "task_id": "task-1779106560000-650e398d", "action": "cancel"},
    "ToolCallRecordQuery": {"limit": "3"},
    "UrlFetch": {"url": "http://127.0.0.1:9/"},
    "ServerSearchController": {"command": "search", "query": "a.txt"},
    "VCPForum": {"command": "CreatePost", "maid": "Nova", "board": "general", "title": "hello", "content": "# hi"},
    "VCPForumOnline": {"command": "CheckUnread"},
    "VSearch": {"SearchTopic": "news", "Keywords": "one", "SearchMode": "tavily"},
    "Wan2.1VideoGen": {"command": "query", "request_id": "none"},
    "ZImageGen2": {"prompt": "a dress", "resolution": "1024x1024"},
    "ZImageTurboGen": {"command": "GenerateImage", "prompt": "a poster", "size": "1024x1024"},
}
STATIC: Final = (
    "ArxivDailyPapers", "CrossRefDailyPapers", "DailyHot", "EmojiListGenerator", "FileListGenerator",
    "FileTreeGenerator", "PlaceholderExplorer", "ScheduleBriefing", "SkillBridge", "UserAuth", "ForumLister",
    "VCPForumOnlinePatrol", "WeatherInfoNow", "WeatherReporter",
)  # fmt: skip
LEAST_SAME: Final = 85  # of 89
EXCEPTIONS: Final = {
    "ToolCallRecordQuery": "it reads the records that VCPToolBox itself keeps in its folder config, with SQLite, which "
    "must write beside them; calls are recorded in Toolyard's journal here",
}
NOT_LOADED: Final = {  # by VCPToolBox either
    "LinuxLogMonitor": "it needs ssh2, which is in no package.json of the tree",
    "MediaRenderer": "it needs a browser and puppeteer, which not every machine installs",
    "DailyNoteSearcher": "its program is shipped for Windows only",
}
