// What a run was measured on.
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { cpus, loadavg, release, totalmem } from 'node:os'

/** Two lines: what runs, and on what. */
export function describeMachine(): readonly string[] {
  const [first] = cpus()
  const bwrap = spawnSync('bwrap', ['--version'], { encoding: 'utf8' }).stdout?.trim() ?? 'no bubblewrap'
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
    version: string
  }
  return [
    `Sallyport ${version}, Node ${process.versions.node}, ${bwrap}, Linux ${release()}, ${process.arch}`,
    `${cpus().length} processors (${first?.model.trim() ?? 'unknown'}), ${Math.round(totalmem() / 1024 ** 3)} GiB, load ${loadavg()[0]?.toFixed(2)} at the start, as ${process.getuid?.() === 0 ? 'root' : 'an ordinary user'}`,
  ]
}
