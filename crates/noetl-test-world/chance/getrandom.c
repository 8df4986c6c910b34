/* Chance of a simulation: what the standard library asks the system for follows from a seed.
 *
 * Hash maps and the runtime's select! are seeded with getrandom(2). Linked into noetl-sim alone, this
 * answers in its place with a stream that NOETL_SIM_CHANCE determines, one per thread; without that
 * variable it asks the kernel.
 */
#define _GNU_SOURCE
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static __thread uint64_t state;
static __thread int begun;

ssize_t getrandom(void *buffer, size_t length, unsigned int flags)
{
	const char *seed = getenv("NOETL_SIM_CHANCE");
	unsigned char *bytes = buffer;

	if (seed == NULL)
		return syscall(SYS_getrandom, buffer, length, flags);
	if (!begun) {
		begun = 1;
		state = strtoull(seed, NULL, 10);
	}
	for (size_t i = 0; i < length; i++) {
		uint64_t mixed;

		state += 0x9e3779b97f4a7c15u;
		mixed = state;
		mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
		mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
		bytes[i] = (unsigned char)(mixed >> 32);
	}
	return (ssize_t)length;
}
