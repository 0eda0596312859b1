// Containers that an engine was asked for and has not answered about: a daemon killed meanwhile leaves one that is made after it.
import { readdir, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { SallyportError } from '../../errors.ts'
import { isMissing } from '../../lib/missing.ts'
import type { Engine } from './engine.ts'

const suffix = '.making'
/** After how long an engine that was asked for a container makes it no more, ms */
const givenUpMs = 600_000

/** The engine, with a file in the daemon's folder for each container while it is not known to be there or refused. */
export const writingDown = (engine: Engine, folder: string): Engine => ({
  ...engine,
  async create(name, plan, waiting) {
    const file = join(folder, `${name}${suffix}`)
    await writeFile(file, '', { mode: 0o600 })
    try {
      const id = await engine.create(name, plan, waiting)
      await rm(file, { force: true })
      return id
    } catch (error) {
      if (error instanceof SallyportError && error.code === 'ERR_ENGINE_REFUSED')
        await rm(file, { force: true })
      throw error
    }
  },
})

/** Forgets containers that are there: what they were written down for has happened. */
export const forgetMade = async (folder: string, names: readonly string[]): Promise<void> => {
  await Promise.all(names.map((name) => rm(join(folder, `${name}${suffix}`), { force: true })))
}

/** Says whether any container may still be made of those that are written down in a daemon's folder. */
export const isStillMaking = async (folder: string): Promise<boolean> => {
  const files = (await readdir(folder)).filter((name) => name.endsWith(suffix))
  let any = false
  for (const name of files) {
    const path = join(folder, name)
    const asked = await stat(path).catch((error: unknown) => {
      if (isMissing(error)) return null
      throw error
    })
    if (asked === null) continue
    if (Date.now() - asked.mtimeMs > givenUpMs) await rm(path, { force: true })
    else any = true
  }
  return any
}
