// Descriptors of whoever started us go nowhere, and none is lost where there are too few.
import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const module = new URL('../../src/daemon/descriptors.ts', import.meta.url).href

it('every inherited descriptor is closed, even beyond a gap in the numbers, and Node goes on', () => {
  const code = `
    import { closeInherited } from ${JSON.stringify(module)}
    import { readdirSync, readlinkSync, readFileSync } from 'node:fs'
    closeInherited()
    const open = readdirSync('/proc/self/fd').flatMap((fd) => { try { return [readlinkSync('/proc/self/fd/' + fd)] } catch { return [] } })
    setTimeout(() => console.log(JSON.stringify({ leaked: open.filter((path) => path === '/etc/hostname'), works: readFileSync('/etc/hostname').length > 0 })), 1)`
  const shell = 'exec 30</etc/hostname 200</etc/hostname; exec "$0" --input-type=module -e "$1"'
  const said = execFileSync('bash', ['-c', shell, process.execPath, code], { encoding: 'utf8' })
  expect(JSON.parse(said)).toEqual({ leaked: [], works: true })
})

it('without that, one beyond the gap would stay', () => {
  const code = `
    const { readlinkSync } = await import('node:fs')
    console.log(readlinkSync('/proc/self/fd/200'))`
  const shell = 'exec 200</etc/hostname; exec "$0" --input-type=module -e "$1"'
  expect(execFileSync('bash', ['-c', shell, process.execPath, code], { encoding: 'utf8' })).toContain(
    '/etc/hostname',
  )
})

it('where /proc is not mounted, that is said, and how it is mended', () => {
  const code = `
    import { closeInherited } from ${JSON.stringify(module)}
    try { closeInherited() } catch ({ code, message }) { console.log(code, message) }`
  const without = 'mount -t tmpfs none /proc && exec "$0" --input-type=module -e "$1"'
  const args = ['--user', '--map-root-user', '--mount', 'sh', '-c', without, process.execPath, code]
  expect(execFileSync('unshare', args, { encoding: 'utf8' })).toMatch(
    /^ERR_SANDBOX_UNENFORCEABLE .*\/proc\/self\/fd .* ENOENT.*; start it where \/proc is mounted\n$/,
  )
})

const starve = fileURLToPath(new URL('../fixtures/starve.ts', import.meta.url))
/** Starts that failed, and how many sockets more there are after all of them. */
const starved = (how: 'failing-early' | 'as-node-does'): { readonly failed: number; readonly left: number } =>
  JSON.parse(execFileSync(process.execPath, [starve, how], { encoding: 'utf8' })) as never

it('a child that can’t be started leaves no descriptor, however few of those are there that it needs', () => {
  const { failed, left } = starved('failing-early')
  expect(failed).toBeGreaterThan(5)
  expect(left).toBe(0)
})

it('without that, Node would keep its five sockets', () => {
  const { failed, left } = starved('as-node-does')
  expect(failed).toBeGreaterThan(5)
  expect(left).toBeGreaterThanOrEqual(5)
})

// What a start had made, and Node forgot, can't be closed by anybody: that corrupts Node's memory.
it('a start that lacks descriptors fails before it has any pipe: with some to spare beyond what it needs', () => {
  expect(starved('failing-early').failed).toBeGreaterThan(starved('as-node-does').failed)
})
