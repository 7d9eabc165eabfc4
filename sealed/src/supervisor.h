// Supervises a sealed program: allows the two calls of its start, then refuses what the filter does not allow.
#pragma once

#include <sys/types.h>

#include <functional>

#include "lrpc/detail/shim/result.h"
#include "lrpc/sealed.h"

namespace lrpc::sealed {

/// The tracer of one program; used by one thread only, because ptrace(2) ties a tracer to a thread.
class Supervisor {
 public:
  Supervisor(pid_t pid, bool kill_on_refusal, std::function<void(const Refusal&)> on_refused) noexcept
      : pid_(pid), kill_on_refusal_(kill_on_refusal), on_refused_(std::move(on_refused)) {}

  /// Traces the child, which waits for its inheritance before it installs the filter. If this process dies, the kernel
  /// kills the child.
  Status seize();
  /// Waits until the program runs (true) or has ended before that (false).
  [[nodiscard]] bool wait_for_start() noexcept;
  /// Waits until the program has ended. Returns its status as waitpid(2) gives it.
  int wait_for_end() noexcept;
  /// Valid after the end of the program.
  [[nodiscard]] int status() const noexcept { return status_; }
  /// Whether the child got as far as to execute the program.
  [[nodiscard]] bool has_executed() const noexcept { return phase_ >= Phase::started; }

 private:
  enum class Phase : std::uint8_t { arranging, offered, started, running };

  [[nodiscard]] bool next_event() noexcept;
  void on_event(int event, int signal) noexcept;
  void on_system_call() noexcept;
  [[nodiscard]] bool is_part_of_start(long number) noexcept;
  [[nodiscard]] bool is_worth_telling(long number, const std::uint64_t* arguments) const;
  [[nodiscard]] std::string peek_string(std::uint64_t address) const;
  void go_on(int signal = 0) const noexcept;

  const pid_t pid_;
  const bool kill_on_refusal_;
  const std::function<void(const Refusal&)> on_refused_;
  Phase phase_ = Phase::arranging;
  int status_ = 0;
};

}  // namespace lrpc::sealed
