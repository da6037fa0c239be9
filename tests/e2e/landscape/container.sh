# Runs a container: its root is an empty folder with the program, the system's libraries and the volumes.
# Arguments: folder of the root, program, pairs of a volume and its mount path, `--`, environment and command.
set -e
root=$1 program=$2
name=/${program##*/}
shift 2
mount -t tmpfs tmpfs "$root"
for folder in bin lib lib64 usr dev proc; do
  [ -e "/$folder" ] || continue
  mkdir "$root/$folder"
  mount --rbind "/$folder" "$root/$folder"
done
mkdir "$root/etc" "$root/tmp"
echo '127.0.0.1 localhost' >"$root/etc/hosts"
echo 'hosts: files' >"$root/etc/nsswitch.conf"
: >"$root$name"
mount --bind "$program" "$root$name"
while [ "$1" != -- ]; do
  mkdir -p "$root/$2"
  mount --bind "$1" "$root/$2"
  shift 2
done
shift
exec chroot "$root" /usr/bin/env -i "$@"
