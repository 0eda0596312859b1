// Writes the supervisor's files into the sandbox: new ones only, through no link, with exactly their mode.
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "init.h"
#include "sandbox.h"

void write_files(const struct orders *orders) {
  for (size_t index = 0; index < orders->file_count; index++) {
    const struct file *file = &orders->files[index];
    int fd = open(file->path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) die("file", file->path, errno);
    if (!write_all(fd, file->bytes, file->length)) die("file", file->path, errno);
    // After the bytes, and not by open, whose mode the umask narrows.
    if (fchmod(fd, file->mode) != 0) die("file", file->path, errno);
    if (close(fd) != 0) die("file", file->path, errno);
  }
}
