// The thread of `verifyApart`: verifies once, says what it found, ends. For another build's daemon it does nothing, and says null.
import { parentPort, workerData } from 'node:worker_threads'
import { build } from '../lib/build.ts'
import type { Task } from './verify-apart.ts'
import { verifyJournal } from './verify.ts'

const task = workerData as Task
const found = task.build === build ? verifyJournal(task.directory, task.key, task.known) : null
// oxlint-disable-next-line require-post-message-target-origin -- a thread, not a window
parentPort?.postMessage(found)
