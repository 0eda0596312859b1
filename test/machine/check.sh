# For both scripts of the machine: how a check is said, and what some of them are.
sallyport=(/job/node_modules/node/bin/node /job/dist/cli/main.js)

# Runs a command, and says by one line whether it held; what it printed last, where it did not.
check() {
  local title=$1 started=$SECONDS log
  log=$(mktemp)
  shift
  if "$@" >"$log" 2>&1; then
    echo "ok      $title: $(tail -n 1 "$log") ($((SECONDS - started)) s)"
  else
    echo "FAILED  $title ($((SECONDS - started)) s)"
    tail -n 25 "$log" | cut -c 1-300
  fi
  rm -f "$log"
}

# Verifies a profile, started by the words behind its name where there are any, and holds that groups of version 2 hold its limits.
verified() {
  local profile=$1 report
  shift
  report=$(mktemp -u)
  "$@" "${sallyport[@]}" verify --profile "$profile" --json --out "$report"
  node -e '
    const { verdict, counts, verifications: [{ enforced_by, probes }] } = JSON.parse(require("fs").readFileSync(process.argv[1]))
    for (const { id, verdict, observed, detail } of probes)
      if (verdict === "fail" || verdict === "error") console.log(verdict, id, observed, detail)
    const { memory, pids, cpu } = enforced_by
    console.log(`${counts.pass} probes and statements held, memory, pids and cpu by ${[...new Set([memory, pids, cpu])]}`)
    process.exit(verdict === "pass" && [memory, pids, cpu].every((by) => by === "cgroup-v2") ? 0 : 1)
  ' "$report"
}
