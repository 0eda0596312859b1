// Becomes a program that ends with the process that started it, even while it is stopped: whoever is reads no stream's end.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "init.h"

int tied_main(char **argv) {
  const char *pid = argv[0], *program = argv[1];
  char parent[16];
  // It outlives the exec, as no program that is run so takes another user's rights.
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) die("tied", "the parent's end", errno);
  // Of one that ended before, the kernel tells nobody.
  snprintf(parent, sizeof parent, "%d", getppid());
  if (strcmp(pid, parent) != 0) return EXIT_SETUP;
  execv(program, argv + 1);
  die_as(errno == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE, "exec", program, errno);
}
