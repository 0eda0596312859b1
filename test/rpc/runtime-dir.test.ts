// The folder of the sockets: made with the right modes, refused where somebody else has a hand in it.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { chmod, chown, lstat, mkdir, readdir, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { runtimeDirectory, stateDirectory } from '../../src/config/paths.ts'
import { prepareRuntimeDir, prepareStateDir } from '../../src/rpc/runtime-dir.ts'
import { tempDir } from '../support/temp-dir.ts'
import { isRoot, nobody, ordinaryUid } from '../support/user.ts'

const mode = async (path: string): Promise<string> => ((await lstat(path)).mode & 0o7777).toString(8)
const unsafe = { code: 'ERR_RUNTIME_UNSAFE' }
const nobodysGroup = 47_892

/** From now on this process is an ordinary user's, where it is root's; disposing makes it root's again. */
const asOrdinaryUser = () => {
  if (isRoot) process.seteuid?.(ordinaryUid)
  return {
    uid: isRoot ? ordinaryUid : process.getuid?.(),
    [Symbol.asyncDispose]: async () => {
      if (isRoot) process.seteuid?.(0)
    },
  }
}

it('the folder is 0711, with both of its folders 0700', async () => {
  await using folder = await tempDir()
  const paths = await prepareRuntimeDir(join(folder.path, 'run'), null)
  expect(await mode(paths.directory)).toBe('711')
  expect(await mode(paths.hostDirectory)).toBe('700')
  expect(await mode(paths.operatorDirectory)).toBe('700')
})

it('daemons that start at once all make it, or take what another has made so far', async () => {
  await using folder = await tempDir()
  await using daemons = await processes(6)
  for (let round = 0; round < 60; round++) {
    const order = { directory: join(folder.path, `run${round}`), at: Date.now() + 5 }
    expect(await daemons.tell(order)).toEqual(Array.from({ length: 6 }, () => 'made'))
  }
})

/** That many of prepare-runtime.ts; `tell` gives all of them one order, and has their answers. */
async function processes(count: number) {
  const script = fileURLToPath(new URL('../fixtures/prepare-runtime.ts', import.meta.url))
  const children = Array.from({ length: count }, () => fork(script))
  const answers = () =>
    Promise.all(children.map(async (child): Promise<string> => (await once(child, 'message'))[0]))
  await answers()
  return {
    tell: (order: { directory: string; at: number }): Promise<string[]> => {
      const all = answers()
      for (const child of children) child.send(order)
      return all
    },
    [Symbol.asyncDispose]: async () => {
      for (const child of children) child.kill('SIGKILL')
    },
  }
}

it('the hosts’ folder is 0750 and the group’s where a group is admitted', async () => {
  await using folder = await tempDir()
  const gid = process.getgid?.() ?? 0
  const paths = await prepareRuntimeDir(join(folder.path, 'run'), gid)
  expect(await mode(paths.hostDirectory)).toBe('750')
  expect((await lstat(paths.hostDirectory)).gid).toBe(gid)
})

it('a group that this user is not in is refused with what helps', async () => {
  await using user = asOrdinaryUser()
  await using folder = await tempDir()
  await expect(prepareRuntimeDir(join(folder.path, 'run'), nobodysGroup)).rejects.toMatchObject({
    ...unsafe,
    message: expect.stringContaining('host_group') as unknown,
  })
  expect(process.geteuid?.()).toBe(user.uid)
})

it('modes that somebody loosened are put right', async () => {
  await using folder = await tempDir()
  const directory = join(folder.path, 'run')
  await prepareRuntimeDir(directory, null)
  await chmod(join(directory, 'operator'), 0o777)
  const paths = await prepareRuntimeDir(directory, null)
  expect(await mode(paths.operatorDirectory)).toBe('700')
})

it.each([
  ['runtime', (directory: string) => prepareRuntimeDir(directory, null), '0711'],
  ['state', prepareStateDir, '0700'],
])(
  'what has been something else’s keeps its mode, and is refused as a %s folder',
  async (_, prepare, wanted) => {
    await using folder = await tempDir()
    const directory = join(folder.path, 'home')
    await mkdir(directory, { mode: 0o755 })
    await prepare(directory)
    await rm(directory, { recursive: true })
    await mkdir(join(directory, 'run'), { recursive: true, mode: 0o755 })
    await chmod(directory, 0o755)
    await expect(prepare(directory)).rejects.toMatchObject({
      ...unsafe,
      message: expect.stringContaining(
        `${directory} has other things in it, and its mode 0755 would become ${wanted}; choose one that is empty`,
      ) as unknown,
    })
    expect([await mode(directory), await readdir(directory)]).toEqual(['755', ['run']])
  },
)

it.each([
  ['runtime', (directory: string) => prepareRuntimeDir(directory, null)],
  ['state', prepareStateDir],
])('what its user may not look into is refused as a %s folder', async (_, prepare) => {
  await using _user = asOrdinaryUser()
  await using folder = await tempDir()
  const directory = join(folder.path, 'shut')
  await mkdir(directory, { mode: 0o300 })
  await expect(prepare(directory)).rejects.toMatchObject({
    ...unsafe,
    message: expect.stringContaining(`${directory} has a mode by which nobody sees what is in it`) as unknown,
  })
  expect(await mode(directory)).toBe('300')
  await chmod(directory, 0o700)
})

it('the root of a disk of its own, and a folder with what is known of programs alone, are taken', async () => {
  await using folder = await tempDir()
  for (const name of ['lost+found', 'programs.json']) {
    await mkdir(join(folder.path, 'state', name), { recursive: true })
    await chmod(join(folder.path, 'state'), 0o755)
    await prepareStateDir(join(folder.path, 'state'))
    expect(await mode(join(folder.path, 'state'))).toBe('700')
    await rm(join(folder.path, 'state'), { recursive: true })
  }
})

it('a symbolic link in its place is refused', async () => {
  await using folder = await tempDir()
  await mkdir(join(folder.path, 'elsewhere'))
  await symlink(join(folder.path, 'elsewhere'), join(folder.path, 'run'))
  await expect(prepareRuntimeDir(join(folder.path, 'run'), null)).rejects.toMatchObject(unsafe)
})

it('a symbolic link above it is refused, with where it leads', async () => {
  await using folder = await tempDir()
  const link = join(folder.path, 'link')
  await mkdir(join(folder.path, 'elsewhere'))
  await symlink('elsewhere', link)
  await expect(prepareRuntimeDir(join(link, 'run'), null)).rejects.toMatchObject({
    ...unsafe,
    message: expect.stringMatching(
      `^folder ${link} is a symbolic link, .* leads, ${join(folder.path, 'elsewhere', 'run')}, with --runtime`,
    ),
  })
})

it.runIf(isRoot)(
  'the folders of a home behind a link of root’s are made and taken where that leads',
  async () => {
    await using folder = await tempDir()
    const homes = join(folder.path, 'var')
    await mkdir(join(homes, 'ann'), { recursive: true })
    await chmod(folder.path, 0o755)
    await chown(join(homes, 'ann'), ordinaryUid, ordinaryUid)
    await symlink('var', join(folder.path, 'home'))
    await using user = asOrdinaryUser()
    const host = { env: {}, home: join(folder.path, 'home', 'ann'), uid: user.uid ?? -1 }
    for (let start = 0; start < 2; start++) {
      await prepareStateDir(await stateDirectory(undefined, host))
      const { directory } = await prepareRuntimeDir(await runtimeDirectory(undefined, host), null)
      expect(directory).toBe(join(homes, 'ann/.local/state/sallyport/run'))
    }
  },
)

it.runIf(isRoot)('a link of one’s own is refused as ever, and above the sockets any but root’s', async () => {
  await using folder = await tempDir()
  await chmod(folder.path, 0o755)
  await mkdir(join(folder.path, 'ann'))
  await chown(join(folder.path, 'ann'), ordinaryUid, ordinaryUid)
  await using user = asOrdinaryUser()
  const home = join(folder.path, 'ann')
  await mkdir(join(home, 'there'))
  await symlink('there', join(home, 'link'))
  const named = { SALLYPORT_RUNTIME_DIR: join(home, 'link/run'), SALLYPORT_STATE_DIR: join(home, 'link') }
  const host = { env: named, home, uid: user.uid ?? -1 }
  const refused = { ...unsafe, message: expect.stringContaining('link') as unknown }
  await expect(prepareRuntimeDir(await runtimeDirectory(undefined, host), null)).rejects.toMatchObject(
    refused,
  )
  await expect(prepareStateDir(await stateDirectory(undefined, host))).rejects.toMatchObject(refused)
})

it('a symbolic link in the place of a folder inside it is refused', async () => {
  await using folder = await tempDir()
  await mkdir(join(folder.path, 'run'))
  await mkdir(join(folder.path, 'elsewhere'))
  await symlink(join(folder.path, 'elsewhere'), join(folder.path, 'run', 'operator'))
  await expect(prepareRuntimeDir(join(folder.path, 'run'), null)).rejects.toMatchObject(unsafe)
})

it.runIf(isRoot)('a folder of another user is refused', async () => {
  await using folder = await tempDir()
  const directory = join(folder.path, 'run')
  await mkdir(directory)
  await chown(directory, nobody, nobody)
  await expect(prepareRuntimeDir(directory, null)).rejects.toMatchObject(unsafe)
})

it.runIf(isRoot)('a folder below another user’s is refused', async () => {
  await using folder = await tempDir()
  await chown(folder.path, nobody, nobody)
  await expect(prepareRuntimeDir(join(folder.path, 'run'), null)).rejects.toMatchObject(unsafe)
})

it('a folder below one that everybody can write is refused', async () => {
  await using folder = await tempDir()
  await chmod(folder.path, 0o777)
  await expect(prepareRuntimeDir(join(folder.path, 'run'), null)).rejects.toMatchObject(unsafe)
})

it('a path too long for a socket is refused before anything is made', async () => {
  await using folder = await tempDir()
  const directory = join(folder.path, 'x'.repeat(100))
  await expect(prepareRuntimeDir(directory, null)).rejects.toMatchObject(unsafe)
  await expect(lstat(directory)).rejects.toThrow('ENOENT')
})

it('one that can’t be made is refused by name', async () => {
  await using folder = await tempDir()
  await writeFile(join(folder.path, 'file'), '')
  for (const directory of ['/proc/no-such-process/a/b', join(folder.path, 'file', 'below')])
    for (const prepare of [prepareStateDir, (path: string) => prepareRuntimeDir(path, null)])
      await expect(prepare(directory)).rejects.toMatchObject({
        ...unsafe,
        message: expect.stringMatching(
          /^folder \S+ cannot be made: .*choose one with --runtime, --state, \$SALLYPORT_RUNTIME_DIR or \$SALLYPORT_STATE_DIR/,
        ),
      })
})
