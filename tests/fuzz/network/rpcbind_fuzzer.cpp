// Attacks the decoders of rpcbind's answers: another host's answer about a port, and the local rpcbind's answers to a
// change and to the question for all entries.
#include <algorithm>
#include <charconv>
#include <string>
#include <vector>

#include "input.h"
#include "lrpc/netrpc/xdr.h"
#include "netrpc/rpcbind/messages.h"

namespace lrpc::netrpc::rpcbind {
namespace {

using fuzz::require;
using Bytes = std::span<const std::byte>;

constexpr SunProgram kServed{.program = 0x20000099, .version = 3, .port = 24211, .host = {0x7f000001}};

std::string_view text_of(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

/// The numbers of "127.0.0.1.94.147"; of other texts as many numbers as can be read.
std::vector<unsigned> numbers_of(std::string_view text) {
  std::vector<unsigned> numbers;
  while (!text.empty()) {
    const std::string_view one = text.substr(0, text.find('.'));
    unsigned number = 0;
    const auto [end, error] = std::from_chars(one.data(), one.data() + one.size(), number);
    if (error != std::errc() || end != one.data() + one.size()) break;
    numbers.push_back(number);
    text.remove_prefix(std::min(one.size() + 1, text.size()));
  }
  return numbers;
}

void read_address(std::string_view text) {
  const auto port = port_of(text);
  if (!port || text.empty()) return;
  const std::vector<unsigned> numbers = numbers_of(text);
  require(numbers.size() == 6, "an address has six numbers");
  require(std::ranges::all_of(numbers, [](unsigned number) { return number <= 255; }), "each of them is a byte");
  require(*port == numbers[4] * 256 + numbers[5], "the last two are the port");
}

void read_port(Bytes results) {
  if (const auto port = found(kPortMapper, results))
    require(std::ranges::equal(XdrWriter().word(*port).bytes(), results), "a port of version 2 has one spelling");
  for (const std::uint32_t version : {kPortMapper + 1, kNewest}) {
    if (!found(version, results)) continue;
    const std::size_t size = XdrReader(results).word();
    require(results.size() >= 4 + size, "an address lies in its answer");
    read_address(text_of(results.subspan(4, size)));
  }
}

void read_answer(Bytes record) {
  const auto results = results_of(record, 5);
  if (!results) return;
  require(record.size() - results->size() >= 24 && results->data() + results->size() == record.data() + record.size(),
          "results are what follows the header");
}

void read_list(Bytes list) {
  if (!lists(list, kServed)) return;
  const std::size_t address = text_of(list).rfind("127.0.0.1.94.147");
  require(address != std::string_view::npos && text_of(list).find("udp") < address, "what is listed is in the list");
}

}  // namespace

void run(std::uint8_t what, Bytes bytes) {
  switch (what % 5) {
    case 0: return read_address(text_of(bytes));
    case 1: return read_port(bytes);
    case 2: return read_answer(bytes);
    case 3: return require(!done(bytes) || bytes.size() == 4, "a change is done or not, and no more is said");
    default: return read_list(bytes);
  }
}

}  // namespace lrpc::netrpc::rpcbind

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  lrpc::fuzz::Input input(data, size);
  const std::uint8_t what = input.byte();
  lrpc::netrpc::rpcbind::run(what, input.rest());
  return 0;
}
