# SPDX-License-Identifier: Apache-2.0
"""Build what is released, into dist/: wheel, sdist, self-contained build, .deb, .rpm and SBOM (`make dist`).

Runs in the environment of requirements/dist.txt. Two runs of the same commit on the same system give the same
bytes (tools/verify_dist.py compares them): times are SOURCE_DATE_EPOCH, which is that of the commit when unset, the
hash seed is fixed, and archives are written in sorted order with root as owner.
"""

import argparse
import gzip
import io
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PARTS = ("python", "bundle", "packages", "sbom")
_EARLIEST = 315532800  # 1980-01-01: what a zip archive can say


def main() -> int:
    """Build the parts that are asked for, in their order."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", default=PARTS, help=f"of {', '.join(PARTS)}; default: all")
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    parser.add_argument("--work", type=Path, default=ROOT / "build")
    parser.add_argument("--package-version", help="version of .deb and .rpm, where it differs (tests)")
    parser.add_argument("--packager", action="append", choices=("deb", "rpm"), help="default: both")
    args = parser.parse_args()
    wrong = set(args.parts) - set(PARTS)
    if wrong:
        parser.error(f"there is no part {min(wrong)}")
    build = Build(args.out.absolute(), args.work.absolute())
    if "python" in args.parts:
        build.python()
    if "bundle" in args.parts:
        build.bundle()
    if "packages" in args.parts:
        for packager in args.packager or ("deb", "rpm"):
            build.package(packager, args.package_version)
    if "sbom" in args.parts:
        build.sbom()
    return 0


class Build:
    """One run: where it works, where its results go, and the environment that makes it repeatable."""

    def __init__(self, out: Path, work: Path) -> None:
        self.out, self.work = out, work
        self.epoch = _epoch()
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        self.version: str = project["version"]
        self.name = f"halod-{self.version}-{platform.system().lower()}-{platform.machine()}"
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("PYTHON")},
            "SOURCE_DATE_EPOCH": str(self.epoch),
            "PYTHONHASHSEED": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYINSTALLER_CONFIG_DIR": str(work / "pyinstaller-cache"),
            "LC_ALL": "C.UTF-8",
            "TZ": "UTC",
        }
        out.mkdir(parents=True, exist_ok=True)
        work.mkdir(parents=True, exist_ok=True)

    @property
    def tree(self) -> Path:
        """Where the wheel is unpacked."""
        return self.work / "tree"

    @property
    def application(self) -> Path:
        """The directory with the self-contained build."""
        return self.work / "bundle" / "halod"

    def run(self, *command: object, **more: str) -> None:
        """Run a tool of this environment. Raises CalledProcessError."""
        words = [str(word) for word in command]
        subprocess.run(words, check=True, cwd=ROOT, env={**self.environment, **more})

    def python(self) -> None:
        """Build wheel and sdist, and unpack the wheel: the self-contained build is made of what is released."""
        self.run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-t", "sdist", "-d", self.out)
        shutil.rmtree(self.tree, ignore_errors=True)
        with zipfile.ZipFile(self.out / f"halod-{self.version}-py3-none-any.whl") as wheel:
            wheel.extractall(self.tree)  # noqa: S202 - our own, of a moment ago

    def bundle(self) -> None:
        """Build the directory that runs without Python, and an archive of it."""
        if not self.tree.is_dir():
            self.python()
        shutil.rmtree(self.work / "bundle", ignore_errors=True)
        where = ["--distpath", self.work / "bundle", "--workpath", self.work / "pyinstaller"]
        spec = ROOT / "packaging" / "pyinstaller.spec"
        self.run(
            sys.executable, "-m", "PyInstaller", "--noconfirm", "--clean", "--log-level", "WARN", *where, spec,
            HALOD_TREE=str(self.tree),
        )  # fmt: skip
        for name in ("LICENSE", "CHANGELOG.md"):
            shutil.copy(ROOT / name, self.application / name)
        for path in [self.application, *self.application.rglob("*")]:
            if not path.is_symlink():
                path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
            os.utime(path, (self.epoch, self.epoch), follow_symlinks=False)
        _archive(self.application, self.out / f"{self.name}.tar.gz", self.epoch)

    def package(self, packager: str, version: str | None) -> None:
        """Build a .deb or .rpm with nfpm, of the self-contained build."""
        if not self.application.is_dir():
            self.bundle()
        machine = platform.machine()
        names = {"x86_64": "amd64", "aarch64": "arm64"}
        config = ROOT / "packaging" / "nfpm.yaml"
        self.run(
            Path(sys.executable).with_name("nfpm"), "package", "--config", config, "--packager", packager,
            "--target", self.out, HALOD_VERSION=version or self.version, HALOD_ARCH=names.get(machine, machine),
            HALOD_BUNDLE=str(self.application), HALOD_LIBC=_libc(packager),
        )  # fmt: skip

    def sbom(self) -> None:
        """Write the bill of materials: what an endpoint installs, and what the self-contained build adds."""
        if not self.application.is_dir():
            self.bundle()
        where = self.out / f"{self.name}.cdx.json"
        script = ROOT / "packaging" / "sbom.py"
        self.run(sys.executable, script, self.application, where)


def _epoch() -> int:
    """Give the time that everything gets: SOURCE_DATE_EPOCH, else the commit's."""
    given = os.environ.get("SOURCE_DATE_EPOCH", "")
    if not given.isdecimal():
        command = ["git", "log", "-1", "--format=%ct"]
        given = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
    return max(_EARLIEST, int(given)) if given.isdecimal() else _EARLIEST


def _libc(packager: str) -> str:
    """Give the dependency on the C library that the build was linked with: older ones lack its symbols."""
    version = platform.libc_ver()[1]
    return f"libc6 (>= {version})" if packager == "deb" else f"glibc >= {version}"


def _archive(source: Path, target: Path, epoch: int) -> None:
    """Pack a directory the same way every time."""

    def plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.uid = member.gid = 0
        member.uname = member.gname = "root"
        member.mtime = epoch
        return member

    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for path in [source, *sorted(source.rglob("*"))]:
            archive.add(path, path.relative_to(source.parent), recursive=False, filter=plain)
    with target.open("wb") as file, gzip.GzipFile("", "wb", 6, file, epoch) as compressed:
        compressed.write(packed.getvalue())


if __name__ == "__main__":
    sys.exit(main())
