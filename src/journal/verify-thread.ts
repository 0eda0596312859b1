// The thread of `verifyApart`: verifies once, says what it found, ends.
import { parentPort, workerData } from 'node:worker_threads'
import type { Task } from './verify-apart.ts'
import { verifyJournal } from './verify.ts'

const { directory, key, known } = workerData as Task
// oxlint-disable-next-line require-post-message-target-origin -- a thread, not a window
parentPort?.postMessage(verifyJournal(directory, key, known))
