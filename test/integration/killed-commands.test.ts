// A daemon that is killed while a program runs for it, and does not end by itself: nothing of that program is left.
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { configOf, fixture, place, type Place, serve } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'
import { groupOf, processesOfGroup } from '../support/leaks.ts'

/** Ends by no signal that can be caught, has what it started do the same, and tells its number when all of it is there. */
const endless = (told: string): string => `#!/bin/sh
trap '' TERM HUP INT PIPE
sh -c 'sleep 987654; :' &
sleep 987653 &
echo $$ >'${told}.new' && mv '${told}.new' '${told}'
wait
`

/** Makes a folder that anybody may enter, with the program in it, and another that anybody may write to. */
const programIn = async (at: Place, name: string): Promise<{ folder: string; told: string }> => {
  const [folder, open] = [join(at.folder, 'bin'), join(at.folder, 'open')]
  for (const path of [folder, open]) await mkdir(path)
  for (const path of [at.folder, folder]) await chmod(path, 0o755)
  await chmod(open, 0o777)
  const told = join(open, 'told')
  await writeFile(join(folder, name), endless(told), { mode: 0o755 })
  return { folder, told }
}

/** Has the server called, kills the daemon once the program is there, and looks for all that was in its group. */
const killedWhileCalled = async (at: Place, told: string, env: Readonly<Record<string, string>>) => {
  const { process: daemon, client } = await serve(at, env)
  await client[Symbol.asyncDispose]()
  const call = at.start(['call', 'slow', 'echo', '-a', 'text=x'])
  await eventually(() => existsSync(told))
  const group = groupOf(Number(readFileSync(told, 'utf8')))
  const ended = [once(daemon, 'exit'), once(call, 'exit')]
  // A group of its own, or what ends it would end this test, too.
  if (group === null || group === groupOf(process.pid)) throw new Error(`it is in group ${group}`)
  const there = processesOfGroup(group)
  daemon.kill('SIGKILL')
  await Promise.all(ended)
  try {
    // The program, the two that it started, and the sleep of one of these, at least.
    expect(there.length).toBeGreaterThanOrEqual(4)
    await eventually(() => processesOfGroup(group).length === 0)
  } finally {
    if (processesOfGroup(group).length > 0) process.kill(-group, 'SIGKILL')
  }
}

test('of a command that a credential comes from', async () => {
  const credentials = [{ use: 'slow', inject: 'env', as: 'SECRET_WORD' }]
  const slow = fixture('echo', { profile: 'secretive', instance: 'call', credentials })
  await using at = await place()
  const { folder, told } = await programIn(at, 'secret')
  const config = configOf({ slow }, { credentials: { slow: { command: [join(folder, 'secret')] } } })
  await writeFile(at.config, JSON.stringify(config), { mode: 0o600 })
  await mkdir(join(at.folder, 'profiles'))
  const profile = { version: 1, name: 'secretive', extends: 'node', widens: true, credentials: ['env'] }
  await writeFile(join(at.folder, 'profiles', 'secretive.yaml'), JSON.stringify(profile), { mode: 0o600 })
  await killedWhileCalled(at, told, {})
})

test('of ssh, by which an engine is reached', async () => {
  await using at = await place(configOf({ slow: fixture('echo', { driver: 'docker' }) }))
  const { folder, told } = await programIn(at, 'ssh')
  const path = [folder, at.env['PATH']].join(':')
  await killedWhileCalled(at, told, { DOCKER_HOST: 'ssh://elsewhere', PATH: path })
})
