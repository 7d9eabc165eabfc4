// A program of somebody who has installed lrpc, built with ThreadSanitizer over libraries that were not. Nothing in it
// is a race: what one thread leaves to another goes along with a call, its return, or a callback of the library's.
//
// threads              server and client in this process
// threads serve NAME   the server alone, until its standard input ends
// threads call NAME    the client alone
// threads race         really a race: ThreadSanitizer is to see it
// threads race-counted the same, at the end of a counted object of a type that the program names
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <coroutine>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lrpc/client.h"
#include "work.client.h"
#include "work.server.h"

namespace {

using namespace std::chrono_literals;

template <class Result>
Result need(Result result, const char* what) {
  if (result) return result;
  std::fprintf(stderr, "threads: %s: %s\n", what, result.error().message().c_str());
  std::_Exit(1);
}
template <class Result>
void must(Result&& result, const char* what) {
  (void)need(std::forward<Result>(result), what);
}
void check(bool so, const char* what) {
  if (so) return;
  std::fprintf(stderr, "threads: not so: %s\n", what);
  std::_Exit(1);
}

/// What a client and its server share in one process, without a lock: one call at a time has it.
struct Shared {
  std::uint64_t calls = 0;
  std::string last;
};

/// Its own members are under a lock: a client in another process may call as it likes. What it shares with a client in
/// this one is not: that one makes one call at a time.
class Service {
 public:
  struct Note {
    explicit Note(std::uint64_t first) : value(std::make_unique<std::uint64_t>(first)) {}
    ~Note() { *value = 0; }
    std::unique_ptr<std::uint64_t> value;
  };

  void Null(lrpc::CallContext&) {
    const std::lock_guard lock(mutex_);
    ++total_;
  }
  std::uint64_t Touch(lrpc::CallContext&, std::uint32_t count) {
    if (shared != nullptr) {
      ++shared->calls;
      shared->last = "touched";
    }
    if (racing) return unlocked_ += count;
    const std::lock_guard lock(mutex_);
    return total_ += count;
  }
  std::uint32_t Swap(lrpc::CallContext&, Work::Pair& pair, const lrpc::String<64>& text) {
    std::swap(pair.first, pair.second);
    const std::lock_guard lock(mutex_);
    last_ = text.str();
    return static_cast<std::uint32_t>(last_.size());
  }
  void Fill(lrpc::CallContext&, std::uint32_t count, lrpc::Buffer& data) {
    const std::lock_guard lock(mutex_);
    filled_.assign(count, std::byte{7});
    (void)data.assign(filled_);
  }
  Work::Note Open(lrpc::CallContext& context, std::uint64_t value) {
    return context.grant<Work::Note>(std::make_shared<Note>(value));
  }
  std::uint64_t Read(lrpc::CallContext&, Note& note) {
    const std::lock_guard lock(mutex_);
    return ++*note.value;
  }
  void Close(lrpc::CallContext&, std::shared_ptr<Note> note) {
    const std::lock_guard lock(mutex_);
    *note->value = 0;
  }
  void Slow(lrpc::CallContext& context, std::uint32_t milliseconds) {
    for (std::uint32_t i = 0; i < milliseconds && !context.abandoned(); ++i) std::this_thread::sleep_for(1ms);
  }
  lrpc::Result<std::uint64_t> Report(lrpc::CallContext& context, std::uint32_t times) {
    auto back = Work::callback(context, {.timeout = 240s, .call_timeout = 240s});
    if (!back) return back.error();
    std::uint64_t sum = 0;
    for (std::uint32_t i = 0; i < times; ++i) {
      if (shared != nullptr) shared->last = "reported";
      const auto heard = (*back)->Heard(i);
      if (!heard) return heard.error();
      sum = *heard;
    }
    return sum;
  }
  void Tell(lrpc::CallContext&, std::uint64_t value) { told += value; }

  Shared* shared = nullptr;
  bool racing = false;
  std::atomic<std::uint64_t> told{0};

 private:
  std::uint64_t unlocked_ = 0;
  std::mutex mutex_;
  std::uint64_t total_ = 0;
  std::string last_;
  std::vector<std::byte> filled_;
};

/// What the server calls.
class Listener {
 public:
  std::uint64_t Heard(lrpc::CallContext&, std::uint64_t value) {
    if (shared != nullptr) shared->last = "heard";
    return sum += value;
  }
  Shared* shared = nullptr;
  std::atomic<std::uint64_t> sum{0};
};

struct Task {
  struct promise_type {
    Task get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::abort(); }
  };
};
Task touch(Work::Client& client, lrpc::CompletionQueue& queue, std::uint64_t& seen, bool& done) {
  auto touched = co_await client.start().Touch(1).on(queue);
  seen = *need(std::move(touched), "co_await");
  done = true;
}

/// Everything that one thread does with a server that is its own.
void one_thread(Work::Client& client, Shared* shared) {
  for (int i = 0; i < 300; ++i) {
    if (shared != nullptr) shared->last = "called";
    must(client.Null(), "Null");
    must(client.Touch(1), "Touch");
    check(shared == nullptr || shared->last == "touched", "what the procedure wrote is there");
    if (i % 50 == 0) std::this_thread::sleep_for(1ms);  // the poller parks, E-stacks take over
  }
  Work::Pair pair{1, 2};
  must(client.Swap(pair, "a text"), "Swap");
  check(pair.first == 2, "inout arguments come back");
  std::vector<std::byte> memory(4096);
  lrpc::Buffer data(memory);
  must(client.Fill(100, data), "Fill");
  check(data.size() == 100, "bytes come back");
  for (int i = 0; i < 20; ++i) {
    auto note = need(client.Open(1), "Open");
    must(client.Read(*note), "Read");
    if (i % 2 == 0) must(client.Close(*note), "Close");  // the others are run down
  }
  {
    const lrpc::CallScope scope{20ms};
    check(client.Slow(60'000).code() == lrpc::Errc::call_aborted, "a deadline ends a call");
  }
  while (lrpc::detail::StubAccess::object(client.binding()).in_quarantine() != 0) std::this_thread::sleep_for(1ms);
  must(client.Tell(1), "Tell");
  must(client.Null(), "Null");
}

/// Calls that one thread starts and others finish; queues; coroutines.
void started_calls(Work::Client& client) {
  auto queue = need(lrpc::CompletionQueue::create(), "a queue");
  for (int i = 0; i < 50; ++i) {
    auto started = client.start().Touch(1);
    std::thread([&] { must(started.finish(), "finish"); }).join();
    bool done = false;
    auto watched = client.start().Touch(1);
    must((*queue)->watch(watched, [&] { done = true; }), "watch");
    while (!done) (*queue)->wait(lrpc::kNoLimit);
    must(watched.finish(), "finish");
    std::uint64_t seen = 0;
    bool resumed = false;
    touch(client, **queue, seen, resumed);
    while (!resumed) (*queue)->wait(lrpc::kNoLimit);
    check(seen != 0, "a coroutine has the result");
  }
}

void many_threads(Work::Client& client) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 200; ++k) must(client.Tell(1), "Tell");
      lrpc::Cancellation cancellation;
      std::thread other([&] { cancellation.cancel(); });
      const lrpc::CallScope scope{cancellation};
      (void)client.Tell(1);
      other.join();
    });
  }
  for (auto& thread : threads) thread.join();
}

void call(Work::Client client, Shared* shared) {
  one_thread(client, shared);
  started_calls(client);
  Listener listener;
  listener.shared = shared;
  {
    lrpc::Server server;
    must(client.serve_callbacks(server, listener), "serve_callbacks");
    must(client.Report(20), "Report");
    check(listener.sum == 190, "callbacks have been served");
  }
  std::thread([&] { one_thread(client, shared); }).join();  // another thread goes on with it
  many_threads(client);
}

/// The server ends first, and the client hears of it.
void revoked(lrpc::ImportOptions options) {
  auto ends = need(lrpc::make_socket_pair(), "a socketpair");
  Service service;
  auto server = std::make_unique<lrpc::Server>();
  must(Work::serve_over(*server, std::move(ends->first), service), "serve_over");
  std::string heard;  // on the library's thread
  std::atomic<bool> told{false};
  options.on_revoked = [&] { heard = "on_revoked"; };
  auto client = need(Work::Client::import_over(std::move(ends->second), options), "import_over");
  must(client->binding().when_revoked([&] {
    heard += ", when_revoked";
    told.store(true, std::memory_order_release);
  }),
       "when_revoked");
  must(client->Null(), "Null");
  must(client->Open(1), "Open");
  std::optional pending(client->start().Slow(60'000));
  server.reset();
  (void)pending->finish();
  while (!told.load(std::memory_order_acquire)) std::this_thread::sleep_for(1ms);
  check(heard == "on_revoked, when_revoked", "both are told, in order");
}

/// A client that goes while its server lives: handles are run down, on_unbound is told.
void unbound(lrpc::Gate gate) {
  auto ends = need(lrpc::make_socket_pair(), "a socketpair");
  Service service;
  Shared shared;
  service.shared = &shared;
  std::uint64_t gone = 0;  // on the clerk's thread
  std::atomic<bool> told{false};
  lrpc::Server server;
  lrpc::ExportOptions options;
  options.authorise = [&](const lrpc::Credentials&) -> lrpc::Status {
    shared.last = "authorised";
    return {};
  };
  options.on_bound = [&](std::uint64_t, const lrpc::Credentials&) { shared.last = "bound"; };
  options.on_unbound = [&](std::uint64_t binding) {
    gone = binding;
    shared.last = "unbound";
    told.store(true, std::memory_order_release);
  };
  must(Work::serve_over(server, std::move(ends->first), service, options), "serve_over");
  auto client = need(Work::Client::import_over(std::move(ends->second), {.gate = gate}), "import_over");
  check(shared.last == "bound", "on_bound was told before");
  call(*std::move(client), &shared);
  while (!told.load(std::memory_order_acquire)) std::this_thread::sleep_for(1ms);
  check(gone != 0 && shared.last == "unbound", "on_unbound is told");
}

/// Two threads call at the same time, and the procedure has no lock.
void race() {
  auto ends = need(lrpc::make_socket_pair(), "a socketpair");
  Service service;
  service.racing = true;
  lrpc::Server server;
  must(Work::serve_over(server, std::move(ends->first), service), "serve_over");
  auto client = need(Work::Client::import_over(std::move(ends->second)), "import_over");
  const auto calls = [&] {
    for (int i = 0; i < 2000; ++i) must(client->Touch(1), "Touch");
  };
  std::thread other(calls);
  calls();
  other.join();
}

/// Whoever lets go of it last does not know that the other has written.
void race_counted() {
  auto text = std::make_shared<lrpc::String<64>>();
  std::atomic<bool> written{false};
  std::thread other([&written, raw = text.get()] {
    *raw = lrpc::String<64>("written");
    written.store(true, std::memory_order_relaxed);
  });
  while (!written.load(std::memory_order_relaxed)) std::this_thread::yield();
  text.reset();
  other.join();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string role = argc > 1 ? argv[1] : "";
  if (role == "race") {
    race();
  } else if (role == "race-counted") {
    race_counted();
  } else if (role == "serve") {
    Service service;
    lrpc::Server server;
    must(Work::export_to(server, argv[2], service), "export_to");
    char byte = 0;
    while (::read(STDIN_FILENO, &byte, 1) > 0) {
    }
  } else if (role == "call") {
    auto client = need(Work::Client::import(argv[2], {.timeout = lrpc::kNoLimit}), "import");
    call(*std::move(client), nullptr);
  } else {
    for (const lrpc::Gate gate : {lrpc::Gate::adaptive, lrpc::Gate::exchange, lrpc::Gate::handoff, lrpc::Gate::sleep}) {
      unbound(gate);
      revoked({.gate = gate});
    }
  }
  std::puts("threads: done");
}
