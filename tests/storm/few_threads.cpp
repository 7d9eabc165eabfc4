// For LD_PRELOAD: every third thread that a program makes by std::thread fails with EAGAIN, as on a machine that has no
// thread left. Threads that lrpc's libraries make, without std::thread, do not fail.
#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <cstring>

extern "C" [[gnu::visibility("default")]] int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                                                             void* (*begin)(void*), void* argument) noexcept {
  static std::atomic<unsigned> asked{0};
  static const auto create = reinterpret_cast<decltype(&pthread_create)>(dlsym(RTLD_NEXT, "pthread_create"));
  Dl_info caller{};
  const bool by_std_thread = dladdr(__builtin_return_address(0), &caller) != 0 && caller.dli_fname != nullptr &&
                             std::strstr(caller.dli_fname, "libstdc++") != nullptr;
  if (by_std_thread && asked.fetch_add(1) % 3 == 2) return EAGAIN;
  return create(thread, attributes, begin, argument);
}
