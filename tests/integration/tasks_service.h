// The implementation of Tasks, and two ways in which tests bind to it.
#pragma once

#include <time.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "tasks.client.h"
#include "tasks.server.h"
#include "world.h"

namespace testing_lrpc {

/// NapFor(n) with n of this or more blocks until release(n) or let_all_go().
inline constexpr std::uint32_t kUntilLetGo = 0xffff'0000;

class TasksService {
 public:
  using CallContext = lrpc::CallContext;
  void Null(CallContext&) {}
  std::int32_t Add(CallContext&, std::int32_t a, std::int32_t b) { return a + b; }
  std::uint32_t NapFor(CallContext&, std::uint32_t milliseconds) {
    if (milliseconds >= kUntilLetGo) {
      ++staying;
      while (!all_go_ && released_ != milliseconds) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      --staying;
      return milliseconds;
    }
    const timespec time{milliseconds / 1000, static_cast<long>(milliseconds % 1000) * 1'000'000};
    nanosleep(&time, nullptr);
    return milliseconds;
  }
  std::uint32_t Reverse(CallContext&, lrpc::Buffer& data) {
    std::ranges::reverse(data.contents());
    return static_cast<std::uint32_t>(data.size());
  }
  lrpc::Result<std::uint32_t, Tasks::Refused> Check(CallContext&, std::uint32_t value) {
    if (value == 13) return lrpc::raise(Tasks::Refused{.code = 7});
    return value * 2;
  }
  lrpc::Result<void> Fail(CallContext&, std::uint16_t code, const lrpc::String<300>& text) {
    return lrpc::Error{static_cast<lrpc::Errc>(code), text.str()};
  }
  lrpc::Result<void> FailBriefly(CallContext&, std::uint16_t code, const lrpc::String<32>& text, std::uint16_t times) {
    std::string whole;
    for (std::uint16_t i = 0; i < times; ++i) whole += text.view();
    return lrpc::Error{static_cast<lrpc::Errc>(code), whole};
  }
  void Log(CallContext&, std::uint32_t number, const lrpc::String<200>& /*text*/) { ++logged_[number % kNumbers]; }
  void LogSlowly(CallContext& call, std::uint32_t number, std::uint32_t milliseconds) {
    (void)NapFor(call, milliseconds);
    ++logged_[number % kNumbers];
  }
  void LogAndThrow(CallContext&, std::uint32_t number) {
    ++logged_[number % kNumbers];
    throw std::runtime_error("nobody hears this");
  }
  std::uint32_t Logged(CallContext&, std::uint32_t number) { return logged_[number % kNumbers]; }

  void release(std::uint32_t number) { released_ = number; }
  void let_all_go() { all_go_ = true; }

  static constexpr std::uint32_t kNumbers = 10'000;
  std::atomic<std::uint32_t> staying{0};

 private:
  std::array<std::atomic<std::uint32_t>, kNumbers> logged_{};
  std::atomic<std::uint32_t> released_{0};
  std::atomic<bool> all_go_{false};
};

/// Both domains in one process, so that a race detector sees both sides. The client must be destroyed first.
struct LocalTasks {
  TasksService service;
  lrpc::Server server;
  std::unique_ptr<Tasks::Client> client;

  explicit LocalTasks(const lrpc::ImportOptions& options = {}) {
    auto ends = lrpc::shim::make_socket_pair();
    if (!ends) throw std::runtime_error(ends.error().message());
    auto served = Tasks::serve_over(server, std::move(ends->first), service);
    if (!served) throw std::runtime_error(served.error().message());
    auto imported = Tasks::Client::import_over(std::move(ends->second), options);
    if (!imported) throw std::runtime_error(imported.error().message());
    client = std::make_unique<Tasks::Client>(*std::move(imported));
  }
  ~LocalTasks() { service.let_all_go(); }
};

/// The server in a process of its own, which a test can kill.
struct TasksProcess {
  Process process;
  lrpc::UniqueFd socket;
};
inline TasksProcess start_tasks_process(const std::string& program, const std::vector<std::string>& further = {}) {
  auto ends = lrpc::shim::make_socket_pair();
  if (!ends) throw std::runtime_error(ends.error().message());
  std::vector<std::string> arguments{program, std::to_string(ends->first.get())};
  arguments.insert(arguments.end(), further.begin(), further.end());
  return {Process(std::move(arguments), {ends->first.get()}), std::move(ends->second)};
}

}  // namespace testing_lrpc
