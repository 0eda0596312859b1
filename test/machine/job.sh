#!/bin/bash
# What the machine is started for: runs there, as root, at the end of the boot. One line for each check, then what it was made of.
set -u
here=/job/test/machine
export PATH=/job/node_modules/.bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root NO_COLOR=1
words=$(cat /proc/cmdline)
profiles=${words##*sallyport.profiles=}
profiles=${profiles%% *}
. "$here/check.sh"

echo "Debian $(cat /etc/debian_version), kernel $(uname -r), $(systemctl --version | head -1), control groups: $(cat /sys/fs/cgroup/cgroup.controllers)"
# An interface and a route that a sandbox must not have: what is nowhere outside can't be shown to be shut.
ip link add outside type dummy && ip address add 192.0.2.1/24 dev outside && ip link set outside up
for profile in ${profiles//,/ }; do
  check "root, $profile" verified "$profile"
done
# A login as sshd or a display manager makes one: a session of the user's own systemd, and that alone.
as_ann() {
  systemd-run --quiet --pipe --wait --uid=ann -p PAMName=login -p TTYPath= -- bash -l "$here/as-user.sh" "$@"
}
as_ann "${profiles//,/ }" </dev/null
echo done
