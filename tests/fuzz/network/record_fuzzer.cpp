// Attacks the reassembly of records: any stream gives the same records, in one piece and in any others, and none that
// is too long.
#include <optional>
#include <vector>

#include "input.h"
#include "netrpc/src/record.h"

namespace lrpc::netrpc {
namespace {

using fuzz::require;
using State = RecordReader::State;

constexpr std::size_t kLongest = 100;

struct Read {
  std::vector<std::vector<std::byte>> records;
  bool wrong = false;
  friend bool operator==(const Read&, const Read&) = default;
};

/// `pieces`: their lengths, used in turn.
Read read(std::span<const std::byte> stream, std::span<const std::byte> pieces) {
  RecordReader reader(kLongest);
  Read found;
  for (std::size_t i = 0; !stream.empty(); ++i) {
    const std::size_t size =
        pieces.empty() ? stream.size() : std::size_t{1} + std::to_integer<std::size_t>(pieces[i % pieces.size()]);
    std::span<const std::byte> piece = stream.first(std::min(size, stream.size()));
    stream = stream.subspan(piece.size());
    for (;;) {
      const State state = reader.feed(piece);
      if (state == State::wrong) {
        found.wrong = true;
        return found;
      }
      if (state == State::more) break;
      require(reader.record().size() <= kLongest, "no record is too long");
      found.records.emplace_back(reader.record().begin(), reader.record().end());
    }
    require(piece.empty(), "what is there is taken");
  }
  return found;
}

}  // namespace
}  // namespace lrpc::netrpc

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using lrpc::netrpc::read;
  lrpc::fuzz::Input input(data, size);
  const auto pieces = input.bytes(input.byte() % 8);
  const auto stream = input.rest();
  lrpc::fuzz::require(read(stream, pieces) == read(stream, {}), "the pieces do not matter");
  return 0;
}
