// Chooses the personality: by the name it was run under, else by the first argument.
#include "init.h"

#include <errno.h>
#include <string.h>

int main(int argc, char **argv) {
  const char *path = argc > 0 ? argv[0] : "";
  const char *slash = strrchr(path, '/');
  const char *name = slash == NULL ? path : slash + 1;
  if (strcmp(name, "sallyport-stdio") == 0) return stdio_main(argc - 1, argv + 1);

  const char *personality = argc > 1 ? argv[1] : "";
  if (strcmp(personality, "outer") == 0 && argc == 2) return outer_main();
  if (strcmp(personality, "init") == 0 && argc == 2) return init_main();
  if (strcmp(personality, "container") == 0 && argc == 2) return container_main();
  if (strcmp(personality, "stdio") == 0) return stdio_main(argc - 2, argv + 2);
  if (strcmp(personality, "peer") == 0 && argc == 2) return peer_main();
  if (strcmp(personality, "nowhere") == 0 && argc == 2) return nowhere_main();
  if (strcmp(personality, "tied") == 0 && argc > 3) return tied_main(argv + 2);
  if (strcmp(personality, "kept") == 0 && argc > 3) return kept_main(argv + 2);
  if (strcmp(personality, "guard") == 0) return guard_main(argc - 2, argv + 2);
  refuse("arguments", personality, "not one of: outer | init | container | stdio NAME | peer | nowhere | tied PID PROGRAM | kept PID PROGRAM | guard [passed] RUNTIME_DIR [STATE_DIR]");
}
