#!/bin/bash
# As a user who has logged in, and has nothing but what a login gives.
set -u
export PATH=/job/node_modules/.bin:$PATH NO_COLOR=1
. /job/test/machine/check.sh
mkdir -p ~/.config/sallyport
cat >~/.config/sallyport/sallyport.yaml <<'YAML'
version: 1
allowed_commands: [{ name: node, path: /job/node_modules/node/bin/node }]
rules: [{ permission: 'mcp:*:*', action: allow }]
servers:
  echo:
    command: node
    args: [/app/echo.mjs]
    package: { source: /job/test/fixtures/servers, target: /app }
    profile: node
    trust: trusted
    acceptance: first-use
YAML
chmod 600 ~/.config/sallyport/sallyport.yaml

# What holds the limits of the server that runs, and what doctor says of the daemon.
limits() {
  "${sallyport[@]}" ps --json >~/ps.json && "${sallyport[@]}" doctor --json >~/doctor.json
  node -e '
    const read = (name) => JSON.parse(require("fs").readFileSync(`${process.env.HOME}/${name}.json`))
    const names = ["memory", "pids", "cpu"]
    const [{ limits }] = read("ps").servers[0].instances
    const rows = read("doctor").controls.filter(({ control }) => names.includes(control))
    const said = [...names.map((name) => limits[name].enforced_by), ...rows.map((row) => row.enforced_by)]
    console.log(`${said}`)
    process.exit(said.length === 6 && said.every((by) => by === "cgroup-v2") ? 0 : 1)
  '
}

# Ends the daemon, and holds that nothing is left: no process, no group.
ended() {
  local pid group left=100
  pid=$("${sallyport[@]}" doctor --json | grep -o '"pid": *[0-9]*' | grep -o '[0-9]*')
  group=/sys/fs/cgroup$(cut -d: -f3 "/proc/$pid/cgroup")
  group=${group%.scope/*}.scope
  kill "$pid"
  while [[ -e $group || -e /proc/$pid ]] && ((left-- > 0)); do sleep 0.2; done
  echo "$group"
  [[ ! -e $group && ! -e /proc/$pid ]] && ! pgrep -u "$(id -u)" -f '/job/dist/'
}

check 'ann, a daemon in the background' "${sallyport[@]}" serve --background
check 'ann, a call' "${sallyport[@]}" call echo echo -a said=here
check 'ann, what holds its limits, and what doctor says' limits
check 'ann, the daemon’s end' ended
# In a group of its own it is alone: not even a shell is in there with it.
for profile in $1; do
  check "ann in a scope, $profile" verified "$profile" systemd-run --user --scope --quiet -p Delegate=yes --
done
