// What is had from the reserve while malloc(3) has nothing, and by whom.
#include "lrpc/reserve.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <new>

namespace lrpc {
namespace {

constexpr std::size_t kPiece = 150 * 1024;  ///< Six of them fit.

/// So many pieces as there are. They are kept.
int take_all() {
  int taken = 0;
  while (::operator new(kPiece, std::nothrow) != nullptr) ++taken;
  return taken;
}

/// What `body` returns in a process for which there is no memory.
template <class Body>
int without_memory(Body&& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit none{0, 0};
    if (::setrlimit(RLIMIT_AS, &none) != 0) ::_exit(255);
    void* volatile piece = nullptr;  // else a compiler may leave the allocation out
    do piece = std::malloc(256);
    while (piece != nullptr);
    ::_exit(body());
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 254;
}

TEST(Reserve, is_had_when_there_is_no_memory) {
  const int taken = without_memory([] {
    const int pieces = take_all();
    return reserve::used() <= reserve::kBytes && reserve::most_used() == reserve::used() ? pieces : 255;
  });
  EXPECT_EQ(taken, 6);
  EXPECT_EQ(reserve::most_used(), 0U) << "where there is memory it is not used";
}

TEST(Reserve, keeps_its_last_part_for_those_for_whom_it_was_kept) {
  EXPECT_EQ(without_memory([] {
              static bool entitled = false;
              reserve::keep_last_for([]() noexcept { return entitled; });
              (void)take_all();
              if (reserve::used() > reserve::kBytes - reserve::kLast) return 1;
              entitled = true;
              if (take_all() != 1) return 2;
              entitled = false;
              if (take_all() != 0) return 3;
              reserve::keep_last_for(nullptr);
              return 0;
            }),
            0);
}

TEST(Reserve, is_said_to_be_short_from_its_half_on) {
  EXPECT_EQ(without_memory([] {
              if (reserve::short_of_memory()) return 1;
              void* const most = ::operator new(reserve::kBytes / 2, std::nothrow);
              if (most == nullptr || !reserve::short_of_memory()) return 2;
              ::operator delete(most);
              return reserve::short_of_memory() || reserve::used() != 0 ? 3 : 0;
            }),
            0);
}

}  // namespace
}  // namespace lrpc
