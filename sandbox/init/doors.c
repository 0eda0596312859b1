// Removes what a daemon's ways out leave behind when it is killed: FOLDER/<instance>/door, each folder, and FOLDER itself.
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guard.h"

void remove_doors(const char *path) {
  DIR *folder = opendir(path);
  if (folder == NULL) return;
  for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
    if (entry->d_name[0] == '.') continue;
    int inside = openat(dirfd(folder), entry->d_name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (inside < 0) continue;
    unlinkat(inside, "door", 0);
    close(inside);
    unlinkat(dirfd(folder), entry->d_name, AT_REMOVEDIR);
  }
  closedir(folder);
  rmdir(path);
}
