import html
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from xml.dom import minidom

root = ET.fromstring("<feed><item id='1'><t>One &amp; only</t></item><item id='2'><t>Zwei</t></item></feed>")
for item in root.findall("item"):
    print(item.get("id"), item.findtext("t"))
ET.SubElement(root, "item", id="3").text = "<3>"
print(ET.tostring(root, encoding="unicode"))


class Links(HTMLParser):
    def handle_starttag(self, tag, attrs):
        if tag == "a":
            print("link", dict(attrs).get("href"))


Links().feed('<p>x<a href="/one">1</a><a href="/two?x=1&amp;y=2">2</a>')
print(html.escape("<a> & b"), html.unescape("&eacute;&#8364;"))
print(minidom.parseString("<a><b/></a>").documentElement.firstChild.tagName)
try:
    ET.fromstring("<a><b></a>")
except ET.ParseError as e:
    print(e.position)
