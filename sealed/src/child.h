// The child's half of starting a sealed domain: between fork and exec. It makes system calls and nothing else,
// because the process it was forked from may have had threads in the middle of anything.
//
//   child                                        launcher
//   connects, sends the import request itself,
//   so that its pid is the client's
//   hands the connection over          ────►     traces it (PTRACE_SEIZE), takes the answer
//   takes region, description, bell    ◄────     sends them
//   leaves itself nothing but descriptors 0 to 4
//   puts itself under the filter
//   offers the listener on the bell              lets this one sendmsg pass
//   executes the program                         lets this one execveat pass; from now on, nothing
//
// What goes wrong before the filter the child reports over the control socket; after it, by its exit status.
#pragma once

#include <linux/filter.h>

#include <array>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lrpc::sealed {

enum class Step : std::uint32_t { asked, connecting, asking, arranging, sealing };

/// Child → launcher. With `asked` comes the connection.
struct Report {
  Step step = Step::asked;
  std::int32_t err = 0;
};

/// Launcher → child, with region, description and bell.
struct Inheritance {
  static constexpr std::size_t kFds = 3;
  std::array<char, 64> variable{};  ///< "LRPC_SEALED=...", zero-terminated.
};

/// What the child needs, made before the fork. Nothing in it is changed or allocated after that.
struct ChildPlan {
  int control = -1;  ///< Its end of the control socket.
  pid_t launcher = 0;
  int program = -1;                      ///< To execute.
  int socket = -1;                       ///< To ask on (a private binding), or -1:
  std::vector<std::string> nameservers;  ///< the paths to connect to, in order.
  std::vector<std::byte> request;        ///< The encoded ImportRequest.
  std::vector<sock_filter> filter;
  std::vector<char*> arguments;    ///< Null at the end.
  std::vector<char*> environment;  ///< The first is to be the inheritance's, null at the end.
  sigset_t mask{};                 ///< The program's signal mask.
};

[[noreturn]] void run_child(ChildPlan& plan) noexcept;

/// What the two sides send each other, as bytes.
template <class T>
std::span<const std::byte> bytes_of(const T& object) noexcept {
  return std::as_bytes(std::span(&object, 1));
}
template <class T>
std::span<std::byte> room_of(T& object) noexcept {
  return std::as_writable_bytes(std::span(&object, 1));
}

}  // namespace lrpc::sealed
