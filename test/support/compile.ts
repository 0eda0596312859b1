// A C probe, for what no shell and no Node can try.
import { execFileSync } from 'node:child_process'

/** Compiles a program to `path`, static so that it runs in any sandbox, and returns the path. */
export const compile = (path: string, source: string): string => {
  execFileSync('cc', ['-static', '-O1', '-x', 'c', '-o', path, '-'], {
    input: source,
    stdio: ['pipe', 'inherit', 'inherit'],
  })
  return path
}
