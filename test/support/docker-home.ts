// What the docker CLI remembers of a person: its config.json, and a helper that keeps secrets.
import { chmod, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { tempDir } from './temp-dir.ts'

export interface DockerHome extends AsyncDisposable {
  /** The folder of config.json */
  readonly path: string
  /** A PATH that begins with the helper's folder */
  readonly searched: string
  /** Writes config.json */
  remember(config: unknown): Promise<void>
  /** Makes `docker-credential-test` another shell program */
  helper(body: string): Promise<void>
}

/** A folder whose helper `test` knows ann, by the password, at every registry. */
export const dockerHome = async (password: string): Promise<DockerHome> => {
  const folder = await tempDir()
  const helper = async (body: string): Promise<void> => {
    const path = join(folder.path, 'docker-credential-test')
    await writeFile(path, `#!/bin/sh\n${body}\n`)
    await chmod(path, 0o755)
  }
  await helper(`[ "$1" = get ] && read asked || exit 9
    printf '{"ServerURL":"%s","Username":"ann","Secret":"${password}"}' "$asked"`)
  return {
    path: folder.path,
    searched: `${folder.path}:${process.env['PATH'] ?? ''}`,
    remember: (config) => writeFile(join(folder.path, 'config.json'), JSON.stringify(config)),
    helper,
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  }
}
