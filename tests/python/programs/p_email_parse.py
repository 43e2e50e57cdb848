from email import message_from_string
from email.message import EmailMessage

m = message_from_string("From: ada@example.org\nSubject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\nTo: bob@example.org\n\nHello\n")
print(m["From"], m.get_payload().strip())
from email.header import decode_header, make_header

print(make_header(decode_header(m["Subject"])))
e = EmailMessage()
e["Subject"], e["To"] = "Hi", "x@example.org"
e.set_content("Body")
e.add_attachment(b"data", maintype="application", subtype="octet-stream", filename="d.bin")
print(e.get_content_type(), [p.get_filename() for p in e.iter_attachments()])
