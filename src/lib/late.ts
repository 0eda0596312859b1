// Loading, when it is first needed, what a daemon can do without until then.
import { errnoOf } from './missing.ts'

/**
 * Gives what `load` imports. Throws what to do where its file is gone: an upgrade, or another build, has put
 * other files in the place of those that this process began with.
 */
export async function late<T>(load: () => Promise<T>): Promise<T> {
  try {
    return await load()
  } catch (error) {
    if (errnoOf(error) !== 'ERR_MODULE_NOT_FOUND') throw error
    const what =
      'sallyport was replaced on disk while this process ran, and a part of it that was not loaded yet is gone; restart the daemon'
    throw new Error(what, { cause: error })
  }
}
