#!/bin/sh
# Installs or upgrades an edge node of the console at the address below:
#
#   curl -fsSL CONSOLE/install.sh | SVC_TOKEN=ewt_... sh -s -- --server URL --ca-sha256 HEX
#
# Run again, it brings the node to the console's latest version and changes nothing else. Everything is inside functions:
# a script that arrived in part does nothing.
set -eu
umask 022

CONSOLE_URL='@CONSOLE_URL@'
NAME=svc-edge
# Keeps the sockets of the node open while it restarts.
HOLDER=svc-edge-hold
UNPACKED_KIB=409600
HEALTHY_SECONDS=90
STOP_SECONDS=40
HAND_SECONDS=10
NEWLINE='
'
# What the package's Node needs.
KERNEL_MAJOR=4
KERNEL_MINOR=18

usage() {
  cat <<USAGE
Installs an edge node of $CONSOLE_URL on this machine, or upgrades the installed one.

  curl -fsSL $CONSOLE_URL/install.sh | SVC_TOKEN=ewt_... sh -s -- OPTIONS

To join a cluster (the console prints these options; an upgrade needs none of them):
  SVC_TOKEN               one-time token, in the environment, because other users can see arguments
  --token-file FILE       reads the token from FILE instead
  --server URL            node channel of the console, https://HOST:PORT
  --ca-sha256 HEX         SHA-256 of the console's certificate authority; the node sends nothing to a server without it
  --node-name NAME        host name to report instead of the machine's
  --force                 joins again and replaces the node's identity

To set what the node serves (kept in $NAME.env; a later run changes only the given options):
  --http-listen LIST      [ADDRESS]:PORT to serve HTTP on, comma-separated (default :80)
  --https-listen LIST     the same for HTTPS, or none (default :443)
  --kernel-bans MODE      auto, on or off: drop banned addresses in the kernel (default auto)

To set how the node is installed:
  --version VERSION       installs VERSION instead of the latest
  --no-systemd            starts the node without systemd; your init system must start it after a reboot
  --no-start              installs and joins without starting
  --skip-port-check       does not check that the ports are free
  --root DIR              installs below DIR instead of /, as any user; needs --no-systemd
  --uninstall             stops and removes the node, but keeps its state
  --purge                 with --uninstall: also removes the state; the node must then join again
  --help                  prints this text
USAGE
}

say() { printf '%s\n' "$*"; }
warn() { printf '%s: %s\n' "$NAME" "$*" >&2; }
die() {
  printf '%s: %s\n' "$NAME" "$1" >&2
  shift
  for line in "$@"; do printf '  %s\n' "$line" >&2; done
  exit 1
}
usage_error() {
  printf '%s: %s\n' "$NAME" "$1" >&2
  printf '  --help lists the options\n' >&2
  exit 2
}
# matches PATTERN TEXT: the whole of a text that is one line.
matches() {
  case $2 in *"$NEWLINE"*) return 1 ;; esac
  printf '%s\n' "$2" | grep -Eqx -- "$1"
}
has() { command -v "$1" >/dev/null 2>&1; }

read_options() {
  server='' ca='' token=${SVC_TOKEN:-} token_file='' node_name='' force='' listen='' https_listen='' kernel_bans=''
  version='' systemd=yes start=yes check_ports=yes root='' uninstall='' purge=''
  unset SVC_TOKEN
  while [ $# -gt 0 ]; do
    case $1 in
      --help | -h) usage && exit 0 ;;
      --force) force=yes ;;
      --no-systemd) systemd='' ;;
      --no-start) start='' ;;
      --skip-port-check) check_ports='' ;;
      --uninstall) uninstall=yes ;;
      --purge) purge=yes ;;
      --server | --ca-sha256 | --token-file | --node-name | --http-listen | --https-listen | --kernel-bans | --version | --root)
        [ $# -ge 2 ] || usage_error "$1 needs a value"
        take_option "$1" "$2"
        shift
        ;;
      --*=*) usage_error "${1%%=*} takes its value after a space, not after =" ;;
      *) usage_error "unknown option $1" ;;
    esac
    shift
  done
  [ -z "$purge" ] || [ -n "$uninstall" ] || usage_error '--purge works with --uninstall only'
  [ -z "$root" ] || [ -z "$systemd" ] || usage_error '--root needs --no-systemd'
  if [ -n "$token_file" ]; then
    [ -r "$token_file" ] || usage_error "$token_file cannot be read"
    token=$(tr -d '[:space:]' <"$token_file")
  fi
  [ -z "$token" ] || matches 'ewt_[A-Za-z0-9_-]{8,200}' "$token" || usage_error 'the token is not of the form ewt_...'
}

# take_option NAME VALUE: what goes into files and addresses later is of a harmless form.
take_option() {
  case $1 in
    --server) form='https://([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?/?' ;;
    --ca-sha256) form='[0-9A-Fa-f]{64}' ;;
    --http-listen) form='(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]*):[0-9]{1,5}(,(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]*):[0-9]{1,5})*' ;;
    --https-listen) form='none|(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]*):[0-9]{1,5}(,(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]*):[0-9]{1,5})*' ;;
    --kernel-bans) form='auto|on|off' ;;
    --version) form='v?[0-9]+\.[0-9]+\.[0-9]+([-+][0-9A-Za-z.+-]+)?' ;;
    --root) form='/[A-Za-z0-9._/-]+' ;;
    *) form='.+' ;;
  esac
  matches "$form" "$2" || usage_error "$1: \"$2\" is not valid"
  case $1 in
    --server) server=${2%/} ;;
    --ca-sha256) ca=$(printf '%s' "$2" | tr 'A-F' 'a-f') ;;
    --token-file) token_file=$2 ;;
    --node-name) node_name=$2 ;;
    --http-listen) listen=$2 ;;
    --https-listen) https_listen=$2 ;;
    --kernel-bans) kernel_bans=$2 ;;
    --version) version=${2#v} ;;
    --root) root=${2%/} ;;
  esac
}

set_paths() {
  prefix=$root/opt/$NAME
  versions=$prefix/versions
  current=$prefix/current
  state=$root/var/lib/$NAME
  config=$root/etc/$NAME/$NAME.env
  command=$root/usr/local/bin/$NAME
  units=$root/etc/systemd/system
  log=$root/var/log/$NAME.log
  pid_file=$root/run/$NAME.pid
}

# --- checks -------------------------------------------------------------------------------------------------------------

check_root() {
  [ -n "$root" ] || [ "$(id -u)" = 0 ] || die 'the installer needs root' \
    "Put 'sudo --preserve-env=SVC_TOKEN' before 'sh' in the same line."
}

check_systemd() {
  [ -z "$systemd" ] || { has systemctl && [ -d /run/systemd/system ]; } || die 'systemd does not run on this machine' \
    'Add --no-systemd. The installer then starts the node once, and your init system must start it after a reboot.'
}

check_machine() {
  [ "$(uname -s)" = Linux ] || die "an edge node needs Linux, this machine runs $(uname -s)"
  case $(uname -m) in
    x86_64 | amd64) arch=amd64 ;;
    aarch64 | arm64) arch=arm64 ;;
    *) die "no package exists for $(uname -m)" 'Use a machine with amd64 or arm64.' ;;
  esac
  kernel=$(uname -r)
  major=${kernel%%.*}
  minor=${kernel#*.}
  minor=${minor%%[!0-9]*}
  [ "$major" -gt "$KERNEL_MAJOR" ] || { [ "$major" -eq "$KERNEL_MAJOR" ] && [ "${minor:-0}" -ge "$KERNEL_MINOR" ]; } ||
    die "an edge node needs Linux $KERNEL_MAJOR.$KERNEL_MINOR or newer, this machine runs $kernel"
}

check_tools() {
  missing=''
  for tool in awk cut df grep gzip mktemp sed sha256sum tar tr; do has "$tool" || missing="$missing $tool"; done
  has curl || has wget || missing="$missing curl"
  has flock || missing="$missing util-linux"
  [ -z "$systemd" ] || has useradd || missing="$missing useradd"
  [ -z "$missing" ] || die "programs are missing:$missing" "Install them, for example: apt-get install -y$missing"
}

check_kernel_bans() {
  PATH=$PATH:/usr/sbin:/sbin
  has nft && return
  [ "$kernel_bans" != on ] || die '--kernel-bans on needs the nft tool' 'Install it, for example: apt-get install -y nftables'
  [ "$kernel_bans" = off ] || warn 'nft is missing, so the edge server enforces bans instead of the kernel (package nftables)'
}

check_disk() {
  folder=$prefix
  until [ -d "$folder" ]; do folder=$(dirname "$folder"); done
  free=$(df -Pk "$folder" | awk 'NR == 2 { print $4 }')
  [ "${free:-0}" -ge "$UNPACKED_KIB" ] ||
    die "the disk of $folder has $((${free:-0} / 1024)) MiB free, the node needs $((UNPACKED_KIB / 1024)) MiB"
}

check_port_free() {
  [ -n "$check_ports" ] && [ -n "$start" ] || return 0
  ! is_running && ! holder_runs || return 0
  wanted=${listen:-$(config_value SVC_HTTP_LISTEN)}
  for address in $(printf '%s' "${wanted:-:80}" | tr ',' ' '); do
    port=${address##*:}
    # State 0A is LISTEN; addresses end in the port, in hexadecimal.
    cat /proc/net/tcp /proc/net/tcp6 2>/dev/null |
      awk -v port="$(printf ':%04X' "$port")" '$4 == "0A" && $2 ~ port "$" { taken = 1 } END { exit !taken }' || continue
    die "port $port is in use" "Find the process:  ss -ltnp 'sport = :$port'" \
      'Stop it, choose another port with --http-listen, or add --skip-port-check.'
  done
}

check_channel() {
  has curl || return 0
  code=0
  curl -ks -o /dev/null --connect-timeout 10 --max-time 20 "$server/" || code=$?
  # Resolving, connecting and waiting only: who answers is judged by its certificate later.
  case $code in
    5 | 6) die "the host of $server cannot be resolved (curl exit code $code)" "Check the machine's DNS." ;;
    7 | 28) die "$server cannot be reached (curl exit code $code)" \
      'Open that port from this machine to the console. No proxy may terminate TLS between them.' ;;
  esac
}

# --- the package --------------------------------------------------------------------------------------------------------

# fetch URL FILE
fetch() {
  if has curl; then
    case $CONSOLE_URL in https:*) protocols='=https' ;; *) protocols='=http,https' ;; esac
    curl -fsSL --proto "$protocols" --connect-timeout 15 --retry 2 --speed-limit 1024 --speed-time 60 -o "$2" "$1"
  else
    wget -q -T 60 -t 3 -O "$2" "$1"
  fi
}

# make_folder FOLDER: remembers what it made, innermost first.
make_folder() {
  [ ! -d "$1" ] || return 0
  make_folder "$(dirname "$1")"
  mkdir "$1"
  made="$1 $made"
}

cleanup() {
  [ -z "$staging" ] || rm -rf "$staging"
  # Folders that this run made and left empty.
  for folder in $made; do rmdir "$folder" 2>/dev/null || :; done
}

# Two installers at a time would undo each other's steps.
take_lock() {
  exec 9<"$prefix"
  flock -n 9 || die 'another installation is going on' 'Wait until it ends, then run this again.'
  rm -rf "$versions"/.new.*
}

find_version() {
  [ -z "$version" ] || return 0
  fetch "$base/latest" "$staging/latest" || die "$base/latest cannot be downloaded" \
    'On the console, "npm run package:node" makes the package and SVC_DOWNLOADS_DIR names its folder.' \
    "If the address cannot be reached, allow connections from this machine to $CONSOLE_URL."
  read -r version <"$staging/latest" || :
  version=${version#v}
  matches '[0-9]+\.[0-9]+\.[0-9]+([-+][0-9A-Za-z.+-]+)?' "$version" || die "$base/latest names no version"
}

find_checksum() {
  archive=${NAME}_${version}_linux_${arch}.tar.gz
  fetch "$base/v$version/checksums.txt" "$staging/checksums" ||
    die "the console has no version $version" "$base/v$version/checksums.txt cannot be downloaded."
  sum=$(awk -v file="$archive" '$2 == file || $2 == "*" file { print $1 }' "$staging/checksums")
  matches '[0-9a-f]{64}' "$sum" || die "version $version has no package for $arch" \
    "On the console: npm run package:node -- --arch $arch"
  target=$versions/$version-$(printf '%s' "$sum" | cut -c1-12)
}

unpack() {
  say "downloading $archive"
  fetch "$base/v$version/$archive" "$staging/$archive" || die "$base/v$version/$archive cannot be downloaded"
  got=$(sha256sum <"$staging/$archive" | cut -d ' ' -f 1)
  [ "$got" = "$sum" ] || die "the SHA-256 of $archive is wrong, nothing was installed" \
    "expected $sum" "received $got" 'Run this again. If it fails again, the package on the console is damaged: build it again.'
  tar -xzf "$staging/$archive" -C "$staging" --no-same-owner || die "$archive cannot be unpacked"
  rm "$staging/$archive"
  fresh=$staging/$NAME
  "$fresh/bin/$NAME" version >/dev/null 2>&1 || die 'the package does not run on this machine' \
    'It needs glibc 2.28 or newer (Debian 10, Ubuntu 20.04, RHEL 8 and later).'
}

# --- identity -----------------------------------------------------------------------------------------------------------

is_enrolled() { [ -f "$state/identity.json" ]; }
identity_field() { sed -n "s/^ *\"$1\": *\"\\([^\"]*\\)\".*/\\1/p" "$state/identity.json"; }

# Decided before anything is fetched.
plan_enrollment() {
  enroll=yes
  if is_enrolled && [ -z "$force" ]; then
    [ -z "$ca" ] || [ "$ca" = "$(identity_field ca_sha256)" ] ||
      die "this machine is a node of another console, $(identity_field server_url)" 'Add --force to let it join this one instead.'
    [ -z "$token" ] || say "this machine already is the node $(identity_field node_name); the token was not used"
    enroll=''
    return
  fi
  [ -n "$token" ] && [ -n "$server" ] && [ -n "$ca" ] ||
    die 'joining a cluster needs SVC_TOKEN, --server and --ca-sha256' \
      "Copy the command from the console: $CONSOLE_URL, in the cluster, under its nodes."
  check_channel
}

# Nothing of this machine is kept on the console, and nothing of the console here, when this fails.
join_cluster() {
  set -- enroll --state-dir "$state" --server "$server" --ca-sha256 "$ca"
  [ -z "$node_name" ] || set -- "$@" --node-name "$node_name"
  [ -z "$force" ] || set -- "$@" --force
  make_folder "$(dirname "$state")"
  [ -d "$state" ] || { mkdir -m 700 "$state" && made="$state $made"; }
  was_running=''
  ! is_running || { stop_node && was_running=yes; }
  say 'joining the cluster'
  if ! SVC_TOKEN=$token "$files/bin/$NAME" "$@"; then
    [ -z "$was_running" ] || start_node
    die 'the machine could not join the cluster' \
      'A token works once and for a limited time. Copy a new command from the console, and run it.'
  fi
  changed=yes
}

# --- files --------------------------------------------------------------------------------------------------------------

config_value() { [ ! -f "$config" ] || sed -n "s/^$1=//p" "$config"; }

# set_config NAME VALUE
set_config() {
  [ "$(config_value "$1")" != "$2" ] || return 0
  {
    [ ! -f "$config" ] || grep -v "^$1=" "$config" || :
    printf '%s=%s\n' "$1" "$2"
  } >"$config.new"
  mv "$config.new" "$config"
  changed=yes
}

write_config() {
  make_folder "$(dirname "$config")"
  set_config SVC_STATE_DIR "$state"
  [ -z "$listen" ] || set_config SVC_HTTP_LISTEN "$listen"
  [ -z "$https_listen" ] || set_config SVC_HTTPS_LISTEN "$https_listen"
  [ -z "$kernel_bans" ] || set_config SVC_KERNEL_BANS "$kernel_bans"
}

use_version() {
  [ "$(readlink "$current" || :)" != "$1" ] || return 0
  ln -sfn "$1" "$current"
  changed=yes
}

write_command() {
  make_folder "$(dirname "$command")"
  ln -sfn "$current/bin/$NAME" "$command"
}

write_unit() {
  id "$NAME" >/dev/null 2>&1 ||
    useradd --system --user-group --no-create-home --home-dir "$state" --shell /usr/sbin/nologin "$NAME"
  chown -R "$NAME:$NAME" "$state"
  ! has restorecon || restorecon -R "$prefix" || :
  written=''
  for unit in "$NAME" "$HOLDER"; do
    if [ ! -f "$current/lib/$unit.service" ]; then
      # A version without this unit opens the ports itself.
      [ ! -f "$units/$unit.service" ] || remove_unit "$unit"
    elif [ "$(cat "$units/$unit.service" 2>/dev/null || :)" != "$(cat "$current/lib/$unit.service")" ]; then
      cp "$current/lib/$unit.service" "$units/$unit.service"
      written=yes
    fi
  done
  [ -n "$written" ] || return 0
  systemctl daemon-reload
  changed=yes
}

# remove_unit UNIT
remove_unit() {
  systemctl disable --quiet --now "$1" || :
  rm -f "$units/$1.service"
  systemctl daemon-reload
}

# The version that runs and the one before stay.
remove_old_versions() {
  for folder in "$versions"/*; do
    [ "$folder" = "$target" ] || [ "$folder" = "$previous" ] || rm -rf "$folder"
  done
}

# --- running ------------------------------------------------------------------------------------------------------------

node_pid() {
  pid=$(cat "$pid_file" 2>/dev/null || :)
  matches '[0-9]+' "$pid" && grep -aq "$NAME" "/proc/$pid/cmdline" 2>/dev/null
}

is_running() {
  if [ -n "$systemd" ]; then systemctl is-active --quiet "$NAME"; else node_pid; fi
}

holder_runs() { [ -n "$systemd" ] && systemctl is-active --quiet "$HOLDER"; }

# The holder of the new version gets the sockets from Caddy, before Caddy itself is restarted.
start_holder() {
  [ -f "$units/$HOLDER.service" ] || return 0
  systemctl enable --quiet "$HOLDER"
  held=''
  ! holder_runs || held=yes
  systemctl restart "$HOLDER"
  [ -n "$held" ] && is_running || return 0
  seconds=0
  until [ -n "$("$current/bin/svc-caddy" hold --socket "/run/$HOLDER/hold.sock" --list 2>/dev/null)" ]; do
    [ "$seconds" -lt "$HAND_SECONDS" ] || return 0
    seconds=$((seconds + 1))
    sleep 1
  done
}

stop_node() {
  if [ -n "$systemd" ]; then
    systemctl stop "$NAME"
    return
  fi
  node_pid || return 0
  kill "$pid"
  seconds=0
  while node_pid; do
    [ "$seconds" -lt "$STOP_SECONDS" ] || die "process $pid does not stop" "Stop it, then run this again:  kill -9 $pid"
    seconds=$((seconds + 1))
    sleep 1
  done
  rm -f "$pid_file"
}

start_node() {
  if [ -n "$systemd" ]; then
    start_holder
    systemctl enable --quiet "$NAME"
    systemctl restart "$NAME"
    return
  fi
  stop_node
  make_folder "$(dirname "$log")"
  make_folder "$(dirname "$pid_file")"
  # Without the lock, which would last as long as the node.
  if has setsid; then
    setsid "$command" supervise >>"$log" 2>&1 9<&- &
  else
    nohup "$command" supervise >>"$log" 2>&1 9<&- &
  fi
  printf '%s\n' $! >"$pid_file"
}

wait_healthy() {
  say 'waiting until the node is connected and serves'
  seconds=0
  until "$command" status >/dev/null 2>&1; do
    [ "$seconds" -lt "$HEALTHY_SECONDS" ] || return 1
    [ -n "$systemd" ] || kill -0 "$(cat "$pid_file")" 2>/dev/null || return 1
    seconds=$((seconds + 1))
    sleep 1
  done
}

show_trouble() {
  "$command" status >&2 || :
  if [ -n "$systemd" ]; then
    journalctl --no-pager -q -n 20 -u "$NAME" >&2 || :
  else
    tail -n 20 "$log" >&2 || :
  fi
}

# The token is used up by now, so a first installation stays; an upgrade goes back to what ran before.
bring_up() {
  start_node
  ! wait_healthy || return 0
  show_trouble
  case $previous in
    '' | "$target")
      die "the node is installed but not healthy after $HEALTHY_SECONDS s" \
        "Its state:  $command status" 'The lines above are the end of its log. The node keeps trying.'
      ;;
  esac
  warn "version $version does not become healthy, the installer restores the previous version"
  stop_node
  # Where versions before 'edge/' look for them; a newer one moves them again.
  for file in config.journal bans.journal security.journal challenge-keys.json; do
    [ ! -f "$state/edge/$file" ] || mv "$state/edge/$file" "$state/$file"
  done
  use_version "$previous"
  [ -z "$systemd" ] || write_unit
  start_node
  rm -rf "$target"
  wait_healthy || die 'the previous version does not become healthy either' "Its state:  $command status"
  die "version $version was not installed, the previous version runs again" 'The lines above are the end of its log.'
}

uninstall() {
  has systemctl && [ -d /run/systemd/system ] || systemd=''
  ! is_running || stop_node
  if [ -n "$systemd" ]; then
    for unit in "$NAME" "$HOLDER"; do
      [ ! -f "$units/$unit.service" ] || remove_unit "$unit"
    done
  fi
  rm -f "$command" "$pid_file" "$log"
  rm -rf "$prefix" "$(dirname "$config")"
  if [ -n "$purge" ]; then
    rm -rf "$state"
    [ -n "$root" ] || ! id "$NAME" >/dev/null 2>&1 || userdel "$NAME" || :
    say 'the node was removed; also delete it on the console'
  elif [ -d "$state" ]; then
    say "the node was removed; its identity and journals are still in $state (--purge removes them)"
  else
    say 'no node was installed'
  fi
}

# ------------------------------------------------------------------------------------------------------------------------

main() {
  read_options "$@"
  set_paths
  check_root
  if [ -n "$uninstall" ]; then
    uninstall
    exit 0
  fi
  check_systemd
  check_machine
  check_tools
  check_kernel_bans
  plan_enrollment
  check_port_free
  check_disk

  base=$CONSOLE_URL/downloads/$NAME
  staging='' made='' changed=''
  trap cleanup EXIT
  trap 'exit 129' HUP
  trap 'exit 130' INT
  trap 'exit 143' TERM
  make_folder "$versions"
  take_lock
  staging=$(mktemp -d "$versions/.new.XXXXXX")
  find_version
  find_checksum
  files=$target
  if [ -d "$target" ]; then
    say "version $version is already unpacked"
  else
    unpack
    files=$fresh
  fi
  [ -z "$enroll" ] || join_cluster

  # From here on nothing is taken back but an upgrade that does not work.
  made=''
  previous=$(readlink "$current" || :)
  [ "$files" = "$target" ] || mv "$files" "$target"
  write_config
  use_version "$target"
  write_command
  [ -z "$systemd" ] || write_unit
  if [ -z "$start" ]; then
    say "version $version is installed, but not started"
    return
  fi
  if [ -n "$changed" ] || ! is_running; then bring_up; fi
  remove_old_versions
  say "the node $(identity_field node_name) runs version $version; see: $command status"
  [ -n "$systemd" ] || say "To start the node after a reboot, let your init system run  $command supervise"
}

# Nothing that is started reads the rest of this script.
main "$@" </dev/null
