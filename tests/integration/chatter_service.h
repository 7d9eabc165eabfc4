// Both sides of Chatter, for tests that have them in one process or in several.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "chatter.client.h"
#include "chatter.server.h"
#include "eventually.h"

namespace testing_lrpc {

using lrpc::CallContext;
using lrpc::Errc;

class ChatterService {
 public:
  using Back = std::shared_ptr<Chatter::Callback::Client>;
  /// For callback bindings that must succeed.
  static lrpc::ImportOptions patient() { return {.timeout = kPatience, .call_timeout = kPatience}; }

  void Ping(CallContext&) {}
  lrpc::Result<std::uint64_t> Sum(CallContext& context, std::uint32_t times) {
    auto back = Chatter::callback(context, patient());
    if (!back) return note(back.error());
    std::uint64_t sum = 0;
    for (std::uint32_t i = 0; i < times; ++i) {
      const auto doubled = (*back)->Double(i);
      if (!doubled) return note(doubled.error());
      sum += *doubled;
    }
    return sum;
  }
  lrpc::Result<std::uint64_t> SumUnmarked(CallContext& context, std::uint32_t times) { return Sum(context, times); }
  lrpc::Result<Chatter::AskResults, Chatter::Refused> Ask(CallContext& context, const lrpc::String<2000>& question,
                                                          std::uint32_t timeout_ms, std::uint32_t call_timeout_ms) {
    lrpc::ImportOptions options;  // 0: the defaults
    if (timeout_ms != 0) options.timeout = std::chrono::milliseconds(timeout_ms);
    if (call_timeout_ms != 0) options.call_timeout = std::chrono::milliseconds(call_timeout_ms);
    auto back = Chatter::callback(context, options);
    if (!back) return Chatter::AskResults{.answer = {}, .code = static_cast<std::uint16_t>(note(back.error()).code)};
    const auto answer = (*back)->Confirm(question.view());
    if (const auto* refused = answer.raised<Chatter::Refused>()) return lrpc::raise(*refused);
    if (!answer)
      return Chatter::AskResults{.answer = {}, .code = static_cast<std::uint16_t>(note(answer.error()).code)};
    return Chatter::AskResults{.answer = *answer, .code = 0};
  }
  lrpc::Result<void> Subscribe(CallContext& context) {
    auto back = Chatter::callback(context, patient());
    if (!back) return note(back.error());
    std::lock_guard lock(mutex_);
    subscribers_.push_back(*std::move(back));
    return {};
  }
  Chatter::PublishResults Publish(CallContext&, std::uint32_t number) { return publish(number); }
  Chatter::PublishResults publish(std::uint32_t number) {
    Chatter::PublishResults results;
    std::thread([&] {  // a thread without a call, and so without a CallContext
      std::vector<Back> all;
      {
        std::lock_guard lock(mutex_);
        all = subscribers_;
      }
      ++publications;
      for (const Back& back : all) {
        const auto told = back->News(number);
        ++(told ? results.told : results.lost);
        if (told) (void)back->Hint(number);
        if (told) continue;
        results.last_error = static_cast<std::uint16_t>(told.code());
        std::lock_guard lock(mutex_);
        std::erase(subscribers_, back);
      }
    })
        .join();
    return results;
  }
  lrpc::Result<std::uint32_t> Recurse(CallContext& context, std::uint32_t depth) {
    if (depth == 0) return 0U;
    auto back = Chatter::callback(context, patient());
    if (!back) return note(back.error());
    const auto sum = (*back)->Deeper(depth - 1);
    if (!sum) return note(sum.error());
    return *sum + 1;
  }
  /// The last error of a procedure's callback.
  [[nodiscard]] lrpc::Error last_error() {
    std::lock_guard lock(error_mutex_);
    return last_error_;
  }
  std::atomic<int> publications{0};  ///< Begun so far. A client that subscribes now does not get these.

 private:
  lrpc::Error note(lrpc::Error error) {
    std::lock_guard lock(error_mutex_);
    return last_error_ = std::move(error);
  }

  std::mutex mutex_;
  std::vector<Back> subscribers_;
  std::mutex error_mutex_;
  lrpc::Error last_error_;
};

/// The client's side: the procedures that its server calls back.
class ChatterListener {
 public:
  std::uint64_t Double(CallContext&, std::uint32_t number) {
    ++doubled;
    return std::uint64_t{number} * 2;
  }
  lrpc::Result<Chatter::Note, Chatter::Refused> Confirm(CallContext&, const lrpc::String<2000>& question) {
    if (question == "refuse") return lrpc::raise(Chatter::Refused{.code = 7});
    if (question == "throw") throw std::runtime_error("no");
    while (question == "hang" && !let_go) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return Chatter::Note{
        .number = static_cast<std::uint32_t>(question.size()), .mood = Chatter::Mood::Bad, .text = "here"};
  }
  void News(CallContext&, std::uint32_t number) { last_news = number; }
  void Hint(CallContext&, std::uint32_t number) { last_hint = number; }
  lrpc::Result<std::uint32_t> Deeper(CallContext&, std::uint32_t depth) {
    if (depth == 0) return 0U;
    const auto sum = server->Recurse(depth - 1);
    if (sum) return *sum + 1;
    auto none = Errc::ok;
    (void)innermost.compare_exchange_strong(none, sum.code());
    return sum.error();
  }

  Chatter::Client* server = nullptr;
  std::atomic<std::uint64_t> doubled{0};
  std::atomic<std::uint32_t> last_news{0};
  std::atomic<std::uint32_t> last_hint{0};
  std::atomic<bool> let_go{false};
  std::atomic<Errc> innermost{Errc::ok};  ///< The first error of Deeper's calls.
};

}  // namespace testing_lrpc
