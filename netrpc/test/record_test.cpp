// Records in a stream that arrives in pieces of any size.
#include "record.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "lrpc/netrpc/wire.h"

namespace lrpc::netrpc {
namespace {

using State = RecordReader::State;

std::string fragment(std::string_view text, bool last) {
  std::byte mark[kRecordMark];
  WireWriter(mark).put(static_cast<std::uint32_t>(record_mark(text.size()) & (last ? ~0U : 0x7fff'ffffU)));
  return std::string(reinterpret_cast<const char*>(mark), kRecordMark) + std::string(text);
}

/// The records of a stream that arrives in pieces of `piece` bytes, each followed by "|"; "wrong" at a malformed one.
std::string read(RecordReader& reader, std::string_view stream, std::size_t piece) {
  std::string found;
  for (std::size_t at = 0; at < stream.size(); at += piece) {
    auto bytes = std::as_bytes(std::span(stream.substr(at, piece)));
    for (;;) {
      const State state = reader.feed(bytes);
      if (state == State::wrong) return found + "wrong";
      if (state == State::more) break;
      found.append(reinterpret_cast<const char*>(reader.record().data()), reader.record().size()).append("|");
    }
    EXPECT_TRUE(bytes.empty());
  }
  return found;
}

TEST(RecordTest, are_put_together_from_any_pieces) {
  const std::string stream = fragment("one", true) + fragment("t", false) + fragment("w", false) + fragment("o", true) +
                             fragment("", true) + fragment("thr", false) + fragment("ee", false) + fragment("", true);
  for (std::size_t piece = 1; piece <= stream.size(); ++piece) {
    RecordReader reader(5);
    EXPECT_EQ(read(reader, stream, piece), "one|two||three|") << piece;
  }
}

TEST(RecordTest, one_that_is_too_long_is_refused_before_it_has_come) {
  RecordReader reader(5);
  EXPECT_EQ(read(reader, fragment("good", true) + fragment("123456", true).substr(0, kRecordMark), 100), "good|wrong");
  EXPECT_EQ(read(reader, fragment("good", true), 100), "wrong");  // the end of the bad record is unknown
  RecordReader parts(5);
  EXPECT_EQ(read(parts, fragment("123", false) + fragment("456", true), 1), "wrong");
  RecordReader most(5);
  EXPECT_EQ(read(most, std::string("\xff\xff\xff\xff", 4), 1), "wrong");
}

TEST(RecordTest, fragments_without_a_byte_do_not_go_on_for_ever) {
  RecordReader reader(5);
  EXPECT_EQ(read(reader, fragment("", false), 1), "wrong");
}

}  // namespace
}  // namespace lrpc::netrpc
