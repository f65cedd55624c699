#!/usr/bin/env bash
# Unpacks Oracle's MySQL server, which no release of Debian has but sid, into a folder of its own.
#
#   scripts/fetch-mysql.sh FOLDER
#
# FOLDER/bin/mysqld runs it with the libraries that it was built for. The system's packages are neither used nor changed:
# apt works on an empty system in a temporary directory. Does nothing if the folder is complete; says in one line why it
# could not be completed.
set -euo pipefail
folder=$(realpath --canonicalize-missing "${1:?usage: scripts/fetch-mysql.sh FOLDER}")
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

[ ! -x "$folder/bin/mysqld" ] || exit 0

fail() { echo "$*" >&2; exit 1; }

command -v apt-get >/dev/null || fail "apt-get is not here"
[ -r "$keyring" ] || fail "$keyring is not here (package debian-archive-keyring)"

# where this system gets its own packages from
archive=$(apt-get indextargets --format '$(REPO_URI)' | grep -m1 '/debian/$' || true)
archive=${archive:-http://deb.debian.org/debian/}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{lists,archives}/partial
echo "deb [signed-by=$keyring] $archive sid main" >"$work/sources.list"
# the server needs Perl for none of its work, only for scripts
printf '%s\n' 'Package: perl' 'Status: install ok installed' 'Multi-Arch: allowed' \
  "Architecture: $(dpkg --print-architecture)" 'Version: 99' >"$work/status"
cat >"$work/apt.conf" <<END
Dir::Etc::sourcelist "$work/sources.list";
Dir::Etc::sourceparts "-";
Dir::State "$work";
Dir::State::status "$work/status";
Dir::Cache "$work";
APT::Install-Recommends "false";
APT::Sandbox::User "";
Debug::NoLocking "true";
APT::Update::Error-Mode "any";
Acquire::Languages "none";
# an old index is as good as a new one
Acquire::Check-Valid-Until "false";
END
export APT_CONFIG=$work/apt.conf
apt-get -qq update 2>"$work/errors" || fail "no index of $archive sid: $(head -1 "$work/errors")"
apt-get -qq --download-only install mysql-server-core >/dev/null 2>"$work/errors" ||
  fail "no mysql-server-core from $archive sid: $(head -1 "$work/errors")"

# complete or not there at all
mkdir -p "$(dirname "$folder")"
fresh=$(mktemp -d "$folder.XXXXXX")
trap 'rm -rf "$work" "$fresh"' EXIT
# /lib and the like have to be links before the first package comes
mkdir -p "$fresh"/system/usr/{bin,sbin,lib,lib64}
for directory in bin sbin lib lib64; do ln -s "usr/$directory" "$fresh/system/$directory"; done
for package in "$work"/archives/*.deb; do
  dpkg --fsys-tarfile "$package" |
    tar --extract --directory "$fresh/system" --keep-directory-symlink --no-same-owner
done
mkdir "$fresh/bin"
cat >"$fresh/bin/mysqld" <<'END'
#!/bin/sh
usr=$(dirname "$(readlink -f "$0")")/../system/usr
for loader in "$usr"/lib/*-linux-gnu*/ld-linux*.so.*; do lib=${loader%/*}; done
exec "$loader" --library-path "$lib" "$usr/sbin/mysqld" "$@" \
  --basedir="$usr" --plugin-dir="$usr/lib/mysql/plugin" \
  --lc-messages-dir="$usr/share/mysql" --character-sets-dir="$usr/share/mysql/charsets"
END
chmod 755 "$fresh/bin/mysqld"
# the tests' servers run as another user than root
chmod --recursive a+rX "$fresh"
"$fresh/bin/mysqld" --no-defaults --version || fail "the server does not run"
rm -rf "$folder"
mv "$fresh" "$folder"
