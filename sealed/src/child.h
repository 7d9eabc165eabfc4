// The child's half of starting a sealed domain: between fork and exec. It only makes system calls, because at the fork
// other threads of the process may have held any lock.
//
//   child                                        launcher
//   connects, sends the import request itself,
//   so that its pid is the client's
//   hands the connection over          ────►     traces it (PTRACE_SEIZE), takes the answer
//   takes region, description, bell    ◄────     sends them
//   keeps only descriptors 0 to 4
//   installs the filter on itself
//   offers the listener on the bell              lets this one sendmsg pass
//   executes the program                         lets this one execveat pass; from now on, nothing
//
// The child reports an error before the filter over the control socket, a later one by its exit status.
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

/// Child → launcher. The connection is attached if `step` is `asked` or `asking`.
struct Report {
  Step step = Step::asked;
  std::int32_t err = 0;
  std::uint32_t nameserver = 0;  ///< Its place in ChildPlan::nameservers, if the connection is attached.
};

/// Launcher → child. Region, description and bell are attached.
struct Inheritance {
  static constexpr std::size_t kFds = 3;
  std::array<char, 64> variable{};  ///< "LRPC_SEALED=...", zero-terminated.
};

/// What the child needs, made before the fork. The child allocates nothing; it sets `control` and environment.front().
struct ChildPlan {
  int control = -1;  ///< Its end of the control socket.
  pid_t launcher = 0;
  int program = -1;                      ///< To execute.
  int socket = -1;                       ///< The socket of a private binding, or -1.
  std::vector<std::string> nameservers;  ///< If `socket` is -1: the sockets to try, in order.
  std::vector<std::byte> request;        ///< The encoded ImportRequest.
  std::vector<sock_filter> filter;
  std::vector<char*> arguments;    ///< Ends with a null pointer.
  std::vector<char*> environment;  ///< The first becomes Inheritance::variable. Ends with a null pointer.
  sigset_t mask{};                 ///< The program's signal mask.
};

[[noreturn]] void run_child(ChildPlan& plan) noexcept;

/// The bytes of an object that the two sides send each other.
template <class T>
std::span<const std::byte> bytes_of(const T& object) noexcept {
  return std::as_bytes(std::span(&object, 1));
}
template <class T>
std::span<std::byte> room_of(T& object) noexcept {
  return std::as_writable_bytes(std::span(&object, 1));
}

}  // namespace lrpc::sealed
