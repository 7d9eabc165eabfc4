// Attacks lrpc-directory's answers to this machine's clients, from etcd's side and from the clients'. A gateway answers
// with any bytes, breaks off, refuses and lies. Users ask for anything, too often, and report anything. What must hold:
// an answer names hosts, each once and at most eight, that etcd or this machine itself has published under that name
// with a compatible interface. An invalid answer of etcd's changes nothing that was known before. A refusal, and each
// line of the log, is short and printable.
#include <time.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "caller.h"
#include "etcd/base64.h"
#include "etcd/http.h"
#include "gateway.h"
#include "input.h"
#include "lookup/lookup_service.h"

namespace {
std::chrono::nanoseconds now{0};
}

// Replaces std::chrono::steady_clock::now() at link time. Time passes as the input says, and a little at each call.
std::chrono::steady_clock::time_point wrapped_now() noexcept asm("__wrap__ZNSt6chrono3_V212steady_clock3nowEv");
std::chrono::steady_clock::time_point wrapped_now() noexcept {
  return std::chrono::steady_clock::time_point(now += std::chrono::nanoseconds(50));
}
// The same for BootClock::now(). All other clocks are the machine's.
int machines_time(clockid_t clock, timespec* time) noexcept asm("__real_clock_gettime");
int wrapped_time(clockid_t clock, timespec* time) noexcept asm("__wrap_clock_gettime");
int wrapped_time(clockid_t clock, timespec* time) noexcept {
  if (clock != CLOCK_BOOTTIME) return machines_time(clock, time);
  now += std::chrono::nanoseconds(50);
  const auto whole = std::chrono::floor<std::chrono::seconds>(now);
  *time = {whole.count(), (now - whole).count()};
  return 0;
}

namespace lrpc::directory {
namespace {

using fuzz::Caller;
using fuzz::Input;
using fuzz::require;

constexpr const char* kPrefix = "/lrpc";
constexpr std::array<const char*, 3> kNames{"files", "db", "lrpc.x"};
constexpr std::uint64_t kHash = 0x1234;
const Host kOwn = *parse_host("10.0.0.1");
constexpr InterfaceId kWanted{"Files", 1, 0, kHash};

bool printable(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
}
std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

HostileGateway& gateway() {
  static HostileGateway* const one = new HostileGateway;
  return *one;
}

class Attack {
 public:
  explicit Attack(Input& input) : etcd_(options(input)) {
    gateway().forget();
    for (std::size_t i = 0; i < clients_.size(); ++i)
      clients_[i] = std::make_unique<Caller>(Directory::kPdl, i + 1, static_cast<uid_t>(1000 + i));
  }

  void step(Input& input) {
    switch (input.byte() % 8) {
      case 0:
      case 1:
      case 2: return say(input);
      case 3:
      case 4: return look_up(input);
      case 5: {
        const std::string host = input.byte() % 4 == 0 ? text_of(input.bytes(input.byte() % 15)) : host_name(input);
        return service_.Report(client(input).context(), String<15>::cut(host), (input.byte() & 1) != 0);
      }
      case 6: now += std::chrono::milliseconds(1ULL << (input.byte() % 20)); return;
      default: {
        const std::uint8_t how = input.byte();
        own_name_.reset();
        if (how % 4 == 0) return;
        own_name_ = {kNames[how % kNames.size()], kOwn, 1, {"Files", 1, 0, how < 0x80 ? kHash : kHash + 1}};
      }
    }
  }

 private:
  static EtcdOptions options(Input& input) {
    EtcdOptions made;
    made.endpoints.assign(1 + input.byte() % 2, gateway().url());
    made.timeout = std::chrono::seconds(20);  // the gateway closes answers without an end
    if (input.byte() % 2 == 0) made.user = made.password = "u";
    return made;
  }
  Caller& client(Input& input) { return *clients_[input.byte() % clients_.size()]; }
  static std::string host_name(Input& input) { return "10.0.0." + std::to_string(1 + input.byte() % 12); }

  /// The entries of some hosts, most of them valid.
  static std::string entries(Input& input) {
    std::string all;
    for (std::size_t count = input.byte() % 24; count > 0; --count) {
      const std::uint8_t how = input.byte();
      const auto host = parse_host(host_name(input));
      const std::string name = kNames[how % kNames.size()];
      const PublishedName one{name, *host, how, {how < 0xc0 ? "Files" : "Other", 1, 0, how < 0xe0 ? kHash : how}};
      std::string value = value_of(one);
      if (how % 16 == 15) value[input.byte() % value.size()] = static_cast<char>(input.byte());
      all.append(all.empty() ? "" : ",").append("{\"key\":\"").append(to_base64(key_of(kPrefix, name, *host)));
      all.append("\",\"value\":\"").append(to_base64(value)).append("\"}");
    }
    return "{\"header\":{\"revision\":\"7\"},\"kvs\":[" + all + "]}";
  }
  static std::string with_length(const std::string& status, const std::string& body) {
    return "HTTP/1.1 " + status + " x\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  }

  void say(Input& input) {
    const std::uint8_t how = input.byte();
    HostileGateway::Answer answer{.bytes = {}, .closes = how >= 0x80};
    std::string body;
    switch (how % 8) {
      case 0: answer = {text_of(input.bytes(input.byte())), true}; return gateway().will_say(std::move(answer));
      case 1:
      case 2:
      case 3:
        body = entries(input);
        learn(body);
        answer.bytes = with_length("200", body);
        break;
      case 4:
        body = text_of(input.bytes(input.byte()));
        learn(body);
        answer.bytes = with_length("200", body);
        break;
      case 5: {
        const std::string status = std::to_string(100 + 4 * input.byte());
        answer = {with_length(status, text_of(input.bytes(input.byte()))), true};
        break;
      }
      case 6:
        answer.bytes = with_length("200", "{\"token\":\"" + text_of(input.bytes(input.byte() % 16)) + "\"}");
        break;
      default: {
        // A stream of lines, such as a watch's, or one that is longer than any answer may be.
        answer = {"HTTP/1.1 200 x\r\nTransfer-Encoding: chunked\r\n\r\n", true};
        for (std::size_t count = input.byte() % 6; count > 0; --count) {
          std::string line = text_of(input.bytes(input.byte() % 64)) + "\n";
          if (input.byte() == 0xff) line.insert(0, std::string(std::size_t{3} << 20, ' '));
          std::array<char, 16> length{};
          const auto end = std::to_chars(length.data(), length.data() + length.size(), line.size(), 16).ptr;
          answer.bytes.append(length.data(), end).append("\r\n").append(line).append("\r\n");
        }
        if (input.byte() % 2 == 0) answer.bytes += "0\r\n\r\n";
      }
    }
    gateway().will_say(std::move(answer));
  }
  /// Records what the service may believe after this answer, if it answers a look-up.
  void learn(const std::string& body) {
    const auto range = read_range(body);
    if (!range) return;
    for (const KeyValue& entry : range->found)
      if (const auto one = parse_published(kPrefix, entry.key, entry.value);
          one && shim::compatible(kWanted, one->interface.view()))
        published_[one->name].insert(one->host);
  }

  void look_up(Input& input) {
    const std::uint8_t how = input.byte();
    const std::string name = how < 0xe0 ? kNames[how % kNames.size()] : text_of(input.bytes(input.byte() % 20));
    const std::uint32_t wait_ms = input.byte() % 4 == 0 ? input.two() : 0;
    Caller& asking = client(input);
    said_.clear();
    const auto answer = service_.Lookup(asking.context(), String<255>::cut(name), kWanted.name, kWanted.major,
                                        kWanted.minor, kHash, wait_ms);
    require(said_.size() <= 4 && std::ranges::all_of(said_, printable), "the log is printable");
    if (!answer) {
      const auto* const refused = answer.raised<Directory::Refused>();
      require(refused != nullptr && printable(refused->text.view()), "a reason is printable");
      require(describe(static_cast<Errc>(refused->code)) != "unknown error" && refused->code != 0, "in a known word");
      return;
    }
    require(shim::valid_name(name), "only a name can be looked up");
    std::set<Host> seen;
    std::optional<Host> first;
    const std::string hosts = answer->hosts.str();
    for (std::size_t begin = 0; begin <= hosts.size();) {
      const std::size_t end = std::min(hosts.find(' ', begin), hosts.size());
      const auto host = parse_host(std::string_view(hosts).substr(begin, end - begin));
      require(host.has_value(), "an answer has hosts, with a space between them");
      if (!first) first = host;
      require(seen.insert(*host).second, "each of them once");
      const bool its_own = own_name_ && own_name_->name == name && *host == kOwn;
      require(its_own || published_[name].contains(*host), "each has published the name, with an interface that fits");
      begin = end + 1;
    }
    require(seen.size() <= LookupService::kMostAnswered, "an answer has eight hosts at most");
    require(answer->own == (*first == kOwn), "this machine is known as itself");
    require(*first == kOwn || !seen.contains(kOwn), "and comes first");
  }

  std::optional<PublishedName> own_name_;
  std::vector<std::string> said_;
  std::map<std::string, std::set<Host>> published_;
  Etcd etcd_;
  LookupService service_{etcd_,
                         {.prefix = kPrefix,
                          .oldest = std::chrono::seconds(300),
                          .own = [] { return kOwn; },
                          .own_name = [this](const std::string& name) -> std::optional<PublishedName> {
                            return own_name_ && own_name_->name == name ? own_name_ : std::nullopt;
                          },
                          .log = [this](Severity, const std::string& line) { said_.push_back(line); },
                          .budget = {.burst = 6, .comes_back = std::chrono::milliseconds(20)}}};
  std::array<std::unique_ptr<Caller>, 2> clients_;
};

}  // namespace
}  // namespace lrpc::directory

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const bool started = [] {
    lrpc::fuzz::require(bool(lrpc::directory::start_http()), "there is HTTP");
    return true;
  }();
  (void)started;
  now = std::chrono::hours(1000);
  lrpc::fuzz::Input input(data, size);
  lrpc::directory::Attack attack(input);
  for (int i = 0; i < 48 && input.more(); ++i) attack.step(input);
  return 0;
}
