// A callback: the server of a long call reports its progress to the client, which may cancel. Two processes.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <string>
#include <utility>

#include "progress.client.h"
#include "progress.server.h"

/// Runs in the server's process.
struct WordCounter {
  lrpc::Result<std::uint64_t, Counting::Cancelled> CountWords(lrpc::CallContext& context,
                                                              const lrpc::String<65535>& text) {
    // If the client serves no callbacks, count without reporting.
    auto client =
        Counting::callback(context, {.timeout = std::chrono::minutes(4), .call_timeout = std::chrono::minutes(4)});
    const std::string_view all = text.view();
    std::uint64_t words = 0;
    std::size_t tenths = 0;
    for (std::size_t at = 0; at < all.size(); ++at) {
      const bool begins = at == 0 || all[at - 1] == ' ';
      if (begins && all[at] != ' ') ++words;
      if ((at + 1) * 10 / all.size() == tenths) continue;
      tenths = (at + 1) * 10 / all.size();
      if (!client) continue;
      const auto go_on = (*client)->Progress(at + 1, all.size());
      if (go_on && !*go_on) return lrpc::raise(Counting::Cancelled{.words = words});
    }
    return words;
  }
};

/// Runs in the client's process, on a thread of its own domain, while the client's call waits; hence the atomic.
struct ProgressBar {
  std::atomic<std::uint64_t> most_percent{100};
  bool Progress(lrpc::CallContext&, std::uint64_t done, std::uint64_t total) {
    const std::uint64_t percent = done * 100 / total;
    std::printf("%llu %%\n", static_cast<unsigned long long>(percent));
    return percent < most_percent || percent == 100;
  }
};

namespace {

int report(const lrpc::Error& error) {
  std::fprintf(stderr, "%s\n", error.message().c_str());
  return 1;
}

int count(Counting::Client& counter) {
  std::string text;
  for (int i = 0; i < 2'000; ++i) text += "word ";
  const auto words = counter.CountWords(text);
  if (const auto* cancelled = words.raised<Counting::Cancelled>()) {
    std::printf("cancelled after %llu words\n", static_cast<unsigned long long>(cancelled->words));
    return 0;
  }
  if (!words) return report(words.error());
  std::printf("%llu words\n", static_cast<unsigned long long>(*words));
  return 0;
}

int run_client(lrpc::UniqueFd socket) {
  auto counter = Counting::Client::import_over(std::move(socket));
  if (!counter) return report(counter.error());
  ProgressBar bar;
  lrpc::Server own_domain;  // serves the callbacks
  if (auto served = counter->serve_callbacks(own_domain, bar); !served) return report(served.error());
  if (const int failed = count(*counter); failed != 0) return failed;
  bar.most_percent = 30;
  return count(*counter);
}

}  // namespace

int main() {
  auto ends = lrpc::make_socket_pair();
  if (!ends) return report(ends.error());
  const pid_t server = fork();
  if (server < 0) return std::perror("fork"), 1;
  if (server == 0) {
    ends->second.reset();
    WordCounter counter;
    lrpc::Server domain;
    if (!Counting::serve_over(domain, std::move(ends->first), counter)) _exit(1);
    for (;;) pause();
  }
  ends->first.reset();
  const int status = run_client(std::move(ends->second));
  kill(server, SIGTERM);
  waitpid(server, nullptr, 0);
  return status;
}
