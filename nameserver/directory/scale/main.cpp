// lrpc-directory-scale measures what many hosts with many names cost a real etcd, and what each host pays in time. It
// starts its own etcd on loopback, simulates the hosts, and prints a table. Only the figures depend on this machine's
// speed.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <exception>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>

#include "etcd/published_name.h"
#include "etcd_server.h"
#include "hosts.h"
#include "lookup/pick.h"
#include "lrpc/command_line.h"
#include "lrpc/detail/shim/system/daemon_descriptors.h"

namespace lrpc::directory::scale {
namespace {

using namespace std::chrono_literals;
using test::EtcdServer;

/// Processor seconds and memory of a process, from /proc.
struct Usage {
  double seconds = 0;
  double megabytes = 0;
};
Usage usage_of(pid_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
  std::string text{std::istreambuf_iterator<char>(in), {}};
  std::istringstream fields(text.substr(text.rfind(')') + 2));
  std::string skipped;
  double user = 0;
  double system = 0;
  double pages = 0;
  for (int i = 3; i < 14; ++i) fields >> skipped;
  fields >> user >> system;
  for (int i = 16; i < 24; ++i) fields >> skipped;
  fields >> pages;
  const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  return {(user + system) / ticks, pages * static_cast<double>(::sysconf(_SC_PAGESIZE)) / 1e6};
}

void head() {
  std::printf("%-52s %9s %9s %9s %9s %9s %10s %12s\n", "what", "count", "in s", "a second", "median ms", "p99 ms",
              "max ms", "etcd cpu us");
}
/// `cpu`: etcd's processor seconds for all of it.
void row(const std::string& what, std::size_t count, double seconds, Samples samples, double cpu) {
  const auto number = static_cast<double>(count);
  std::printf("%-52s %9zu %9.2f %9.0f %9.3f %9.3f %10.3f %12.0f\n", what.c_str(), count, seconds, number / seconds,
              samples.ms(0.5), samples.ms(0.99), samples.ms(1), cpu * 1e6 / number);
  std::fflush(stdout);
}

double seconds_since(Clock::time_point began) { return std::chrono::duration<double>(Clock::now() - began).count(); }

/// Lookups of random names, by `threads` threads with a connection each. Each ends when `enough` returns true for the
/// number of its lookups.
struct Lookups {
  Samples samples;
  std::size_t hosts = 0;  ///< Entries found.
  std::size_t failed = 0;
};
template <class Enough>
Lookups look_up(const Shape& shape, const EtcdOptions& options, unsigned threads, Enough enough) {
  std::vector<Lookups> each(threads);
  std::vector<std::thread> running;
  for (std::size_t i = 0; i < threads; ++i)
    running.emplace_back([&, i] {
      Etcd etcd(options);
      std::mt19937_64 chance(i);
      Suspects suspects;
      std::uniform_int_distribution<std::size_t> any(0, distinct_names(shape) - 1);
      while (!enough(each[i].samples.size())) {
        const std::string name = name_at(any(chance));
        const auto began = Clock::now();
        const auto range = etcd.range(keys_of_name("/lrpc", name), 256);
        std::vector<Host> hosts;
        if (range)
          for (const KeyValue& entry : range->found)
            if (const auto published = parse_published("/lrpc", entry.key, entry.value))
              hosts.push_back(published->host);
        (void)pick(hosts, 0, 0, suspects, Suspects::Time::clock::now(), chance, 8);
        each[i].samples.add(Clock::now() - began);
        each[i].hosts += hosts.size();
        if (!range) ++each[i].failed;
      }
    });
  Lookups all;
  for (unsigned i = 0; i < threads; ++i) {
    running[i].join();
    all.samples.add(each[i].samples);
    all.hosts += each[i].hosts;
    all.failed += each[i].failed;
  }
  return all;
}

/// Waits until `holds()`. Throws after some hours, which only a fault takes.
template <class Condition>
void wait_until(const char* what, Condition holds) {
  constexpr auto kPause = 20ms;
  for (int looks = 0; looks < 3h / kPause; ++looks) {
    if (holds()) return;
    std::this_thread::sleep_for(kPause);
  }
  throw std::runtime_error(std::string("this does not come about: ") + what);
}

/// A thread that is always told to stop, and joined.
class Helper {
 public:
  template <class Work>
  explicit Helper(Work work) : thread_([this, work] { work(stop_); }) {}
  ~Helper() { end(); }
  void end() {
    stop_ = true;
    join();
  }
  void join() {
    if (thread_.joinable()) thread_.join();
  }

 private:
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

/// Measures the time from a put until a program that waits for the name knows it.
void measure_watches(const EtcdServer& server, int count) {
  Etcd etcd(server.options());
  const LeaseId lease = etcd.grant(600s).value().id;
  Samples samples;
  const double before = usage_of(server.pid()).seconds;
  const auto began = Clock::now();
  for (int i = 0; i < count; ++i) {
    const std::string prefix = "/lrpc/names/awaited-" + std::to_string(i) + "/";
    const KeyValue entry{prefix + "10.0.0.1", "x"};
    const auto now = etcd.range(prefix, 1);
    std::atomic<Clock::time_point> put{};
    std::thread writer;
    const std::atomic<bool> stop = false;
    (void)etcd.watch(
        prefix, now->revision + 1, 3600s,
        [&](const Changes& changes) {
          if (!changes.changes.empty()) {
            samples.add(Clock::now() - put.load());
            return false;
          }
          writer = std::thread([&] {
            put = Clock::now();
            (void)etcd.put(std::span(&entry, 1), lease);
          });
          return true;
        },
        stop);
    if (writer.joinable()) writer.join();
  }
  if (samples.size() != static_cast<std::size_t>(count)) throw std::runtime_error("a watch has ended without its put");
  row("watch: made, one put, heard of (from the put on)", samples.size(), seconds_since(began), samples,
      usage_of(server.pid()).seconds - before);
  (void)etcd.revoke(lease);
}

/// Returns how many seconds after the end of `storm` a program that watches all keys has received `changes` changes.
template <class Storm>
double hear_all(const EtcdServer& server, std::size_t changes, Storm storm) {
  Etcd etcd(server.options());
  const std::int64_t from = etcd.range("/lrpc/", 1).value().revision + 1;
  std::atomic<bool> stands = false;
  std::size_t heard = 0;
  Helper watcher([&](const std::atomic<bool>& stop) {
    (void)etcd.watch(
        "/lrpc/", from, 3600s,
        [&](const Changes& news) {
          stands = true;
          heard += news.changes.size();
          return heard < changes;
        },
        stop);
  });
  wait_until("a watch of everything", [&] { return stands.load(); });
  storm();
  const auto began = Clock::now();
  watcher.join();
  if (heard < changes) throw std::runtime_error("a watch of everything has ended before all changes were heard of");
  return seconds_since(began);
}

/// How many names are in etcd.
std::size_t published(const EtcdServer& server) {
  const auto range = Etcd(server.options()).range(keys_of_all("/lrpc"), 1);
  return range ? range->found.size() + range->more : 0;
}

/// Waits until etcd has all names of all hosts; meanwhile one thread looks names up. Returns how many lookups failed.
std::size_t measure_storm(const std::string& what, const Shape& shape, const EtcdServer& server, Hosts& hosts,
                          double cpu, Clock::time_point began) {
  Lookups lookups;
  Helper looking([&](const std::atomic<bool>& stop) {
    lookups = look_up(shape, server.options(), 1, [&](std::size_t) {
      std::this_thread::sleep_for(1ms);
      return stop.load();
    });
  });
  wait_until("all names of all hosts in etcd",
             [&] { return hosts.settled() && published(server) == shape.hosts * shape.names; });
  const double seconds = seconds_since(began);
  looking.end();
  auto counted = hosts.take();
  row(what + ", each host", counted.published.size(), seconds, counted.published, usage_of(server.pid()).seconds - cpu);
  row("  a lookup meanwhile", lookups.samples.size(), seconds, lookups.samples, 0);
  std::printf("  %llu requests, of which %llu failed; %.0f names a second; etcd has %.0f MB\n",
              static_cast<unsigned long long>(counted.requests), static_cast<unsigned long long>(counted.failures),
              static_cast<double>(shape.hosts * shape.names) / seconds, usage_of(server.pid()).megabytes);
  std::fflush(stdout);
  return lookups.failed;
}

void measure_quiet(const Shape& shape, const EtcdServer& server, Hosts& hosts) {
  (void)hosts.take();
  const double cpu = usage_of(server.pid()).seconds;
  const auto began = Clock::now();
  std::this_thread::sleep_for(shape.lease);
  auto counted = hosts.take();
  const double spent = usage_of(server.pid()).seconds - cpu;
  row("keep-alive, all hosts quiet", counted.keep_alives.size(), seconds_since(began), counted.keep_alives, spent);
  std::printf("  etcd's share of one processor: %.1f %%\n", 100 * spent / seconds_since(began));
}

int run(const Shape& shape, std::size_t lookups) {
  EtcdServer server;
  std::printf("%zu hosts, %zu names each, %zu keys; %zu distinct names at %zu hosts each; lease %lld s; one etcd\n",
              shape.hosts, shape.names, shape.hosts * shape.names, distinct_names(shape), shape.replicas,
              static_cast<long long>(shape.lease.count()));
  head();
  EtcdOptions options = server.options();
  options.timeout = shape.timeout;
  double cpu = usage_of(server.pid()).seconds;
  auto began = Clock::now();
  Hosts hosts(shape, options);
  std::size_t failed = measure_storm("all hosts start at once", shape, server, hosts, cpu, began);

  for (const unsigned threads : {1U, 8U}) {
    cpu = usage_of(server.pid()).seconds;
    began = Clock::now();
    auto looked =
        look_up(shape, server.options(), threads, [&](std::size_t done) { return done >= lookups / threads; });
    const double seconds = seconds_since(began);
    row("lookup, " + std::to_string(threads) + " at a time", looked.samples.size(), seconds, looked.samples,
        usage_of(server.pid()).seconds - cpu);
    failed += looked.hosts == 0 ? looked.samples.size() : looked.failed;
  }
  measure_watches(server, 200);
  measure_quiet(shape, server, hosts);

  const std::size_t keys = shape.hosts * shape.names;
  const double late = hear_all(server, keys, [&] {
    (void)hosts.take();
    const double before = usage_of(server.pid()).seconds;
    const auto now = Clock::now();
    hosts.restart_all();
    failed += measure_storm("all hosts restart at once", shape, server, hosts, before, now);
  });
  std::printf(
      "  one host that copies everything by a watch knows all %zu changes %.1f s later; all hosts: %.0f million\n",
      keys, late, static_cast<double>(keys * shape.hosts) / 1e6);

  (void)hosts.take();
  server.kill();
  server.forget();
  server.start();
  began = Clock::now();
  failed += measure_storm("etcd comes back empty", shape, server, hosts, 0, began);
  if (failed == 0) return 0;
  std::printf("%zu lookups failed, or found nothing\n", failed);
  return 1;
}

}  // namespace
}  // namespace lrpc::directory::scale

int main(int argc, char** argv) {
  lrpc::command_line::Program program("What many hosts with many names cost etcd, and each of them.",
                                      "lrpc-directory-scale");
  lrpc::directory::scale::Shape shape;
  std::uint64_t lookups = 20'000;
  std::uint64_t lease = 30;
  const auto option = [&](const char* name, std::uint64_t& value, const char* help, std::uint64_t least,
                          std::uint64_t most) {
    program.option(name, value, help).in_range(least, most).show_default();
  };
  option("--hosts", shape.hosts, "Simulated hosts", 1, 10'000);
  option("--names", shape.names, "Names of each", 1, 10'000);
  option("--replicas", shape.replicas, "Hosts that export one name", 1, 256);
  option("--threads", shape.threads, "That drive the hosts", 1, 256);
  option("--lookups", lookups, "How many are measured", 8, 10'000'000);
  option("--lease", lease, "Seconds", 2, 3'600);
  if (const auto status = program.parse(argc, argv)) return *status;
  if (const auto why = lrpc::directory::test::why_no_etcd()) {
    std::printf("skipped: %s\n", why->c_str());
    return 77;
  }
  try {
    lrpc::shim::raise_descriptor_limit();
    shape.lease = std::chrono::seconds(lease);
    return lrpc::directory::scale::run(shape, lookups);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "lrpc-directory-scale: %s\n", error.what());
    return 1;
  }
}
