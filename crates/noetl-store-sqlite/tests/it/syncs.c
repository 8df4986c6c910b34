/* Notes the syncs of a process: each fsync(2) and fdatasync(2) that succeeds adds the path of its file, as
 * a line, to the file that NOETL_TEST_SYNCS names. A test loads it with LD_PRELOAD.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static int noted(int fd, long result)
{
	const char *notes = getenv("NOETL_TEST_SYNCS");
	char link[64];
	char line[PATH_MAX + 1];
	ssize_t length;
	int out;

	if (result != 0 || notes == NULL)
		return (int)result;
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	length = readlink(link, line, PATH_MAX);
	out = open(notes, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	if (length < 0 || out < 0)
		abort();
	line[length++] = '\n';
	if (write(out, line, (size_t)length) != length)
		abort();
	close(out);
	return 0;
}

int fsync(int fd)
{
	return noted(fd, syscall(SYS_fsync, fd));
}

int fdatasync(int fd)
{
	return noted(fd, syscall(SYS_fdatasync, fd));
}
