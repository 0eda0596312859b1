// A program between two pipes, for the small programs of this folder.
#include <err.h>
#include <fcntl.h>
#include <spawn.h>
#include <unistd.h>

extern char **environ;

/** A program that was started, and its stdin and stdout from outside */
struct piped_child {
  pid_t pid;
  int to, from;
};

/** Starts `argv[0]` as the shell would find it; ends with 1 where it can't. */
static struct piped_child start_piped(char **argv) {
  int input[2], output[2];
  struct piped_child child;
  posix_spawn_file_actions_t actions;
  if (pipe2(input, O_CLOEXEC) != 0 || pipe2(output, O_CLOEXEC) != 0) err(1, "pipe");
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output[1], STDOUT_FILENO);
  if (posix_spawnp(&child.pid, argv[0], &actions, NULL, argv, environ) != 0) errx(1, "%s: not started", argv[0]);
  close(input[0]);
  close(output[1]);
  child.to = input[1];
  child.from = output[0];
  return child;
}
