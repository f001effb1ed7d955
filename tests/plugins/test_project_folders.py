"""The shared folders of VCPToolBox that an old plugin needs, as its code names them."""

import pytest

from toolyard.plugins.package.fingerprint import FolderMentions

pytestmark = pytest.mark.requirement("confinement:files")


def scan(*codes: bytes) -> set[str]:
    mentions = FolderMentions()
    for code in codes:
        mentions.scan(code)
    return set(mentions.result())


@pytest.mark.parametrize(
    "code",
    [
        b"path.join(process.env.PROJECT_BASE_PATH, 'image', 'doubao')",
        b'os.path.join(os.environ["PROJECT_BASE_PATH"], "image")',
        b"const dir = path.join(__dirname, '..', '..', 'image');",
        b"const dir = '../../image/out';",
        b'Path(__file__).parent.parent.parent / "image"',
    ],
)
def test_a_folder_of_the_projects_root_is_found(code: bytes) -> None:
    assert scan(code) == {"image"}


def test_a_folder_and_the_root_may_be_named_in_different_files() -> None:
    assert scan(b"const root = process.env.PROJECT_BASE_PATH;", b"join(root, 'dailynote')") == {"dailynote"}


def test_a_word_alone_is_no_folder() -> None:
    assert scan(b"an image of PROJECT_BASE_PATH") == set()
    assert scan(b"join(root, 'image')") == set(), "of its own folder, perhaps"
    assert scan(b"PROJECT_BASE_PATH + '/secrets/'") == set()


@pytest.mark.parametrize("code", [b"import multiprocessing", b"futures.ProcessPoolExecutor(2)"])
def test_a_program_of_several_processes_needs_their_shared_memory(code: bytes) -> None:
    assert scan(code) == {"/dev/shm"}
    assert scan(code.replace(b"ro", b"or")) == set()
